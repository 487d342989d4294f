"""Explaining a whole corpus into a file: parts that are whole or not there, by workers here or on a cluster."""
