// Package python answers: which module does a check in Python use?
package python

import _ "embed" // for preflight.py

//go:embed preflight.py
var library string

// Library returns preflight.py, which a check imports.
func Library() string { return library }
