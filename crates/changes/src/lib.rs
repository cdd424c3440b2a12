//! What changed in a tree, and the way back.
