//! The tree-sitter languages.
