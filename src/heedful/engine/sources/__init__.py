"""Where models and data come from: a run folder, a checkpoint, a corpus, a file, an edited corpus."""
