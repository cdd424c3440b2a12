//! JSON with comments and trailing commas, read into the tree.

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Number, Value};

use super::lines::comma_between;
use super::tree::{Group, GroupForm, Node, NodeShape, Style, TreeItem};
use super::{DataError, DataLanguage, position};

/// JSON with the extensions of editors; not JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn parse(text: &str) -> Result<Node, DataError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let (line, column) = position(text, error.range().start);
        DataError::Invalid { line, column, reason: error.kind().to_string() }
    })?;
    parsed.value.map(|value| node(text, value)).ok_or(DataError::Empty)
}

fn node(text: &str, value: Ast<'_>) -> Node {
    let range = value.range();
    let span = range.start..range.end;
    let inside = span.start + 1..span.end.saturating_sub(1).max(span.start + 1);
    let shape = match value {
        Ast::StringLit(string) => NodeShape::Scalar(Value::String(string.value.into_owned()), Style::Double),
        Ast::NumberLit(number) => NodeShape::Scalar(self::number(number.value), Style::Plain),
        Ast::BooleanLit(boolean) => NodeShape::Scalar(Value::Bool(boolean.value), Style::Plain),
        Ast::NullKeyword(_) => NodeShape::Scalar(Value::Null, Style::Plain),
        Ast::Object(object) => {
            let items = object.properties.into_iter().map(|property| {
                let (start, end) = (property.name.range().start, property.name.range().end);
                let key = Some((property.name.into_string(), end));
                TreeItem { key, start, node: node(text, property.value), comma: None }
            });
            NodeShape::Map(Group { items: items.collect(), form: GroupForm::Flow(inside) })
        }
        Ast::Array(array) => {
            let items = array.elements.into_iter().map(|element| {
                let node = node(text, element);
                TreeItem { key: None, start: node.span.start, node, comma: None }
            });
            NodeShape::List(Group { items: items.collect(), form: GroupForm::Flow(inside) })
        }
    };
    let mut node = Node { span, shape, fixed: None };
    find_commas(text, &mut node, DataLanguage::Json);
    node
}

/// Finds the commas of a group between brackets.
pub(super) fn find_commas(text: &str, node: &mut Node, kind: DataLanguage) {
    let (NodeShape::Map(group) | NodeShape::List(group)) = &mut node.shape else {
        return;
    };
    let GroupForm::Flow(inside) = &group.form else {
        return;
    };
    let starts: Vec<usize> = group.items.iter().skip(1).map(|item| item.start).chain([inside.end]).collect();
    for (item, next) in group.items.iter_mut().zip(starts) {
        item.comma = comma_between(text, item.end(), next, kind);
    }
}

fn number(text: &str) -> Value {
    // As serde_json reads it; a number beyond a float is kept as its text.
    text.parse::<Number>().map_or_else(|_| Value::String(text.to_owned()), Value::Number)
}
