//! A real service manager.
