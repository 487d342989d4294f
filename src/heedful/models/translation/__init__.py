"""Our own translators: an encoder, an attention and a decoder, four public steps for each word that is said."""
