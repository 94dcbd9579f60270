// Package sh answers: which functions does a check in POSIX sh use?
package sh

import _ "embed" // for preflight.sh

//go:embed preflight.sh
var library string

// Library returns preflight.sh, which a check sources.
func Library() string { return library }
