//! Finding text and files in a tree.
