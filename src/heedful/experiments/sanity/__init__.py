"""Tests of explanations that need no true answer: do they stay where a model stays, does a selection tell the label?"""
