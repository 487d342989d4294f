"""What a folder of transformers holds, as its configuration names it, where it is not a classifier of texts: and what
works with it today."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

GENERATES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel")  # names of classes that generate
Answered = Literal["tags", "span", "gap"]  # by models that answer at places of a text (models/places)
# The end of the name of an architecture -> what it answers. A model that is only pretrained fills gaps.
AT_PLACES: Mapping[str, Answered] = {
    "ForTokenClassification": "tags",
    "ForQuestionAnswering": "span",
    "ForMaskedLM": "gap",
    "ForPreTraining": "gap",
}
# The end of the name of an architecture -> what such a model does.
OTHER_KINDS: Mapping[str, str] = {
    "ForTokenClassification": "labels the words of a text one by one (named entities, parts of speech)",
    "ForQuestionAnswering": "marks the answer to a question in a text",
    "ForQuestionAnsweringSimple": "marks the answer to a question in a text",
    "ForMaskedLM": "says which word stands at a hidden place (a masked language model)",
    "WithLMHeadModel": "says which word comes at a place (a language model)",
    "ForCausalLM": "says which word comes next (a causal language model)",
    "LMHeadModel": "says which word comes next (a causal language model)",
    "ForConditionalGeneration": "writes a text in answer to a text (an encoder-decoder)",
    "MTModel": "translates a text (an encoder-decoder)",
    "MarianModel": "gives vectors, not labels (an encoder-decoder without an output)",
    "ForMultipleChoice": "chooses one of several texts",
    "ForPreTraining": "was pretrained and says which word stands at a hidden place (a language model)",
    "ForImageClassification": "labels images",
    "ForAudioClassification": "labels sounds",
}


def architecture_of(config: Mapping[str, Any]) -> str | None:
    """The class that a folder was saved from."""
    named = config.get("architectures")
    return str(named[0]) if isinstance(named, list) and named else None


def answered_at_places(architecture: str | None) -> Answered | None:
    """What a class of transformers answers at places of a text; None: nothing."""
    return next((kind for end, kind in AT_PLACES.items() if architecture and architecture.endswith(end)), None)


def say_what_it_is(
    config: Mapping[str, Any], name: str, wrapped: bool = False, folder: Path | None = None
) -> str | None:
    """One sentence about a model that is known not to be a classifier of texts, and what works; else None.

    `folder`: where the files of an id are, now that they were fetched and it is known what they are.
    """
    architecture = architecture_of(config)
    if architecture is None:
        return None
    does = next((does for end, does in OTHER_KINDS.items() if architecture.endswith(end)), None)
    if does is None:
        return None
    if folder is not None and architecture.endswith((*AT_PLACES, *GENERATES)):
        return f"{name} is a {architecture}: it {does}. heedful explains such models from their folder: give {folder}."
    works = say_what_works({} if wrapped else config, name)
    return f"{name} is a {architecture}: it {does}, and heedful explains classifiers of whole texts. {works}"


def say_what_works(config: Mapping[str, Any], name: str) -> str:
    """What can be done today with a model that is not a classifier."""
    function = "a function from texts to probabilities can be explained: heedful.wrap(function, labels=[...])"
    if not _can_be_trained(config):
        return f"{function[0].upper()}{function[1:]}."
    return f"Fine-tune a copy as a classifier: heedful train DATA --start {name}. Or {function}."


def _can_be_trained(config: Mapping[str, Any]) -> bool:
    """Whether the library has a classifier of this type that `heedful train --start` can begin with."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

    kind = config.get("model_type")
    if (
        not isinstance(kind, str)
        or kind not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
        or config.get("is_encoder_decoder")
    ):
        return False
    return not getattr(CONFIG_MAPPING[kind](), "is_encoder_decoder", False)  # of an encoder-decoder's encoder, too
