"""Questions that compare with models trained otherwise: uniform, other seeds, frozen, imitating, deceiving, masked."""
