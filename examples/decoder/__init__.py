"""A decoder layer, each step of it a kernel: run it with `python -m examples.decoder`.

`vector.py` normalises, rotates, keeps the cache and applies the activation; `products.py`
multiplies; `attention.py` is flash attention over the pages of the cache; `layer.py` puts them
together, for a prompt and for the tokens after it, and says in NumPy what they should give.
"""
