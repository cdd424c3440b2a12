//! The pieces of a word. Nearly every word is one piece of text, and a list of one would cost as much as its text.

use std::ops::{Deref, DerefMut};

use crate::script::Piece;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pieces {
    One([Piece; 1]),
    Many(Vec<Piece>),
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Piece) {
        match std::mem::replace(self, Self::Many(Vec::new())) {
            Self::Many(mut pieces) if !pieces.is_empty() => {
                pieces.push(piece);
                *self = Self::Many(pieces);
            }
            Self::Many(_) => *self = Self::One([piece]),
            Self::One([first]) => *self = Self::Many(vec![first, piece]),
        }
    }
}

impl Default for Pieces {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<Piece> for Pieces {
    fn from(piece: Piece) -> Self {
        Self::One([piece])
    }
}

impl Deref for Pieces {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

impl DerefMut for Pieces {
    fn deref_mut(&mut self) -> &mut [Piece] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}
