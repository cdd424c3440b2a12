//! Tools without a model: the shell, single calls, the code graph.

pub(crate) mod graph;
pub(crate) mod shell;
pub(crate) mod tool_run;
