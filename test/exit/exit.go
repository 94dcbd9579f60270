// Package exit answers: which exit codes does oc-preflight promise? The tests have them as
// scripts of administrators do: written out, and not from the program.
package exit

// The exit codes, which never change.
const (
	Ready       = 0
	Failed      = 1
	BadInput    = 2
	Blocked     = 3
	Undecided   = 4
	Interrupted = 130
)
