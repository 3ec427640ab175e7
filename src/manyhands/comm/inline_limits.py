"""When a message is sent inline: its tensors travel in its head, and no payload follows."""

# no more than so many tensors, if they are no larger in sum
INLINE_BYTES, INLINE_TENSORS = 8192, 32


def fits_inline(total_bytes: int, tensors: int) -> bool:
    """Return whether so many tensors, of so many bytes in sum, travel in a head."""
    return total_bytes <= INLINE_BYTES and tensors <= INLINE_TENSORS
