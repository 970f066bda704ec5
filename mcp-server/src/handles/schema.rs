//! Handles in the schemas of tools.

use std::any::TypeId;
use std::cell::RefCell;
use std::sync::Arc;

use schemars::Schema;

use crate::handles::value::HandleValue;

/// A type of handles that a tool takes or returns.
#[derive(Clone, Copy)]
pub(crate) struct UsedKind {
    pub(crate) value: TypeId,
    pub(crate) value_name: &'static str,
}

/// The handles of a tool, as its schemas have them.
#[derive(Clone, Default)]
pub(crate) struct ToolHandles {
    kinds: Option<Arc<[UsedKind]>>,
}

impl ToolHandles {
    /// Returns the kinds of the handles that the tool takes or returns.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &UsedKind> {
        self.kinds.iter().flat_map(|kinds| kinds.iter())
    }
}

thread_local! {
    /// The kinds in the schemas that are being generated on this thread.
    static GENERATED: RefCell<Option<Vec<UsedKind>>> = const { RefCell::new(None) };
}

/// Records the kinds of handles in the schemas that are generated until it is finished.
pub(crate) struct SchemaRecorder {
    /// What was being recorded before, by the tool of an enclosing schema.
    outer: Option<Vec<UsedKind>>,
}

impl SchemaRecorder {
    pub(crate) fn start() -> Self {
        Self { outer: GENERATED.replace(Some(Vec::new())) }
    }

    /// Returns whether the schemas so far have handles.
    pub(crate) fn has_handles(&self) -> bool {
        GENERATED.with_borrow(|kinds| kinds.as_ref().is_some_and(|kinds| !kinds.is_empty()))
    }

    pub(crate) fn finish(mut self) -> ToolHandles {
        let kinds = GENERATED.replace(self.outer.take()).unwrap_or_default();
        ToolHandles { kinds: (!kinds.is_empty()).then(|| kinds.into()) }
    }
}

/// The member of a schema with the text about the handle, until [`describe`] makes it part of the description.
const MARKER: &str = "x-mcp-handle";

pub(crate) fn of_handle<T: HandleValue>() -> Schema {
    GENERATED.with_borrow_mut(|kinds| {
        if let Some(kinds) = kinds {
            kinds.push(UsedKind { value: TypeId::of::<T>(), value_name: std::any::type_name::<T>() });
        }
    });
    let about = format!("A {} handle, exactly as a tool returned it. {}", T::NAME, T::HINT);
    schemars::json_schema!({ "type": "string", MARKER: about })
}

/// Adds what a handle is to the description that the author gave its member, if there is one.
pub(crate) fn describe(schema: &mut Schema) {
    let Some(serde_json::Value::String(about)) = schema.remove(MARKER) else { return };
    let given = schema.get("description").and_then(|text| text.as_str()).map(str::trim_end);
    let described = match given {
        None | Some("") => about,
        Some(given) if given.ends_with(['.', '!', '?', ':']) => format!("{given} {about}"),
        Some(given) => format!("{given}. {about}"),
    };
    schema.insert("description".to_owned(), described.into());
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;
    use crate::handles::handle::Handle;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Basket;

    impl HandleValue for Basket {
        const NAME: &'static str = "basket";
        const HINT: &'static str = "Call `open_basket` to get one.";
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Arguments {
        plain: Handle<Basket>,
        /// The basket to compare with
        documented: Option<Handle<Basket>>,
        #[serde(default)]
        many: Vec<Handle<Basket>>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct NoHandles {
        count: u32,
    }

    #[test]
    fn schemas_say_what_a_handle_is() {
        let schema: serde_json::Value =
            crate::handlers::schema::of_arguments::<Arguments>().unwrap().schema.decode().unwrap();
        let about = "A basket handle, exactly as a tool returned it. Call `open_basket` to get one.";
        let documented = format!("The basket to compare with. {about}");
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "plain": { "type": "string", "description": about },
                    "documented": { "type": ["string", "null"], "description": documented },
                    "many": { "type": "array", "items": { "type": "string", "description": about }, "default": [] },
                },
                "required": ["plain"],
            })
        );
    }

    #[test]
    fn tools_know_whether_they_have_handles() {
        let record = |arguments: fn(), result: fn()| {
            let recorder = SchemaRecorder::start();
            arguments();
            let takes_handles = recorder.has_handles();
            result();
            (recorder.finish(), takes_handles)
        };
        fn none() {
            let _ = crate::handlers::schema::of::<NoHandles>();
        }
        fn some() {
            let _ = crate::handlers::schema::of::<Arguments>();
        }
        let (neither, takes_handles) = record(none, none);
        assert!(neither.kinds.is_none() && !takes_handles);
        let (returned, takes_handles) = record(none, some);
        assert!(returned.kinds().count() > 0 && !takes_handles);
        let (taken, takes_handles) = record(some, none);
        assert!(taken.kinds().all(|used| used.value == TypeId::of::<Basket>()) && takes_handles);
        assert!(GENERATED.with_borrow(Option::is_none));
    }
}
