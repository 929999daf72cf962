//! What theory allows and what to expect: memory, decode, prefill.
