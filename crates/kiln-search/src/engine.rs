//! Finding an index and changing it, for both faces.
//!
//! The long part of a write runs beside everything else, on an index that was found under a hold
//! that is long gone. The short part, under the exclusive hold of the key, first looks whether the
//! key still holds that index; if not, the write starts over with what is there now.

use kiln_base::sync::Arc;
use kiln_command::{CommandError, Context, Entry, Object, View};
use kiln_keyspace::{Engine, downcast};
use kiln_vector::{Index, Suspended, VectorError};

/// An engine that is an index.
pub(crate) trait Indexed: Engine {
    /// The index.
    fn index(&self) -> &Index;

    /// Hears that the attributes of an element changed, under the exclusive hold of the key.
    fn attributes_changed(&self, _element: &[u8]) {}
}

/// The engine of type `T` at `key`.
pub(crate) fn find<T: Engine>(view: &View<'_>, key: &[u8]) -> Result<Option<Arc<T>>, CommandError> {
    match view.engine(key)? {
        None => Ok(None),
        Some(engine) => downcast(engine).map(Some).ok_or(CommandError::WrongType),
    }
}

/// As [`find`], under a hold of its own.
pub(crate) fn look_up<T: Engine>(
    context: &mut Context<'_>,
    key: &[u8],
) -> Result<Option<Arc<T>>, CommandError> {
    context.read(key, |view| find(view, key))
}

/// What a key holds, seen from a write that wants to commit.
enum Place {
    /// The engine that the write worked on.
    Same,
    /// Nothing.
    Free,
    /// Something else.
    Other,
}

fn place_of<T: Engine>(view: &mut View<'_>, key: &[u8], engine: &Arc<T>) -> Place {
    view.expire_due(key);
    match view.engine(key) {
        Ok(None) => Place::Free,
        Ok(Some(found)) if Arc::as_ptr(found).cast::<()>() == Arc::as_ptr(engine).cast() => {
            Place::Same
        }
        Ok(Some(_)) | Err(_) => Place::Other,
    }
}

/// Runs `change` on `engine` under the exclusive hold of `key`, if it is still there.
pub(crate) fn change<T: Engine, R>(
    context: &mut Context<'_>,
    key: &[u8],
    engine: &Arc<T>,
    change: impl FnOnce(&mut View<'_>) -> R,
) -> Option<R> {
    context
        .write(key, |view| matches!(place_of(view, key, engine), Place::Same).then(|| change(view)))
}

/// Counts a change of an engine and tells the key's watchers; there is no event for it.
pub(crate) fn announce(view: &mut View<'_>, key: &[u8]) {
    view.count_changes(1);
    view.signal(key);
}

/// Removes the engine or whatever else is at `key`, and announces it; says whether there was any.
pub(crate) fn remove(context: &mut Context<'_>, key: &[u8]) -> bool {
    context.write(key, |view| {
        let existed = view.delete(key);
        if existed {
            announce(view, key);
        }
        existed
    })
}

/// A vector that is stored and linked in an index and waits for its name. Dropping it takes the
/// vector out again.
pub(crate) struct Prepared<T: Indexed> {
    engine: Arc<T>,
    /// Whether the engine itself is yet to be put at its key.
    is_new: bool,
    waiting: Option<Suspended>,
}

impl<T: Indexed> Prepared<T> {
    /// The long part of an insert.
    pub(crate) fn new(
        engine: Arc<T>,
        is_new: bool,
        vector: &[f32],
        ef: Option<usize>,
    ) -> Result<Self, VectorError> {
        let waiting = Some(engine.index().prepare(vector, ef)?.suspend());
        Ok(Self { engine, is_new, waiting })
    }

    /// The short part: from now on `element` stands for the vector. Returns whether it did for
    /// another before, or `None` if the key holds another engine now, so that all must be done
    /// again.
    pub(crate) fn commit(
        mut self,
        context: &mut Context<'_>,
        key: &[u8],
        element: &[u8],
        attributes: Option<&[u8]>,
    ) -> Option<bool> {
        let index = self.engine.index();
        let waiting = self.waiting.take().expect("it is committed once");
        let mut pending = Some(index.resume(waiting));
        let published = context.write(key, |view| {
            match place_of(view, key, &self.engine) {
                Place::Same => {}
                Place::Free if self.is_new => {
                    let engine = Arc::clone(&self.engine);
                    view.insert(Entry::object(key, Object::Engine(engine), None));
                }
                Place::Free | Place::Other => return None,
            }
            let pending = pending.take().expect("it is published once");
            if attributes.is_some_and(<[u8]>::is_empty) {
                index.set_attributes(element, None);
            }
            // An empty text takes attributes away; a new element gets it all the same, as in Redis.
            let text = attributes.filter(|text| !text.is_empty() || !index.contains(element));
            let published = index.publish(element, pending, text);
            if attributes.is_some() {
                self.engine.attributes_changed(element);
            }
            announce(view, key);
            Some(published)
        })?;
        // The vector before is unlinked here, without the lock.
        Some(published.replaced())
    }
}

impl<T: Indexed> Drop for Prepared<T> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            drop(self.engine.index().resume(waiting));
        }
    }
}
