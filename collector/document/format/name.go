package format

import "strings"

// The kinds in the format name.
const (
	// RunName is the kind of a run: its name is the ID.
	RunName = "preflight"
	// UpdateName is the kind of a target: its name is the version.
	UpdateName = "update"
	// CheckName is the kind of a check of a release.
	CheckName = "check"
)

// BareName is a name with or without its kind, without it.
func BareName(kind, text string) string { return strings.TrimPrefix(text, kind+"/") }
