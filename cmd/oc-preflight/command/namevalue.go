package command

import (
	"github.com/openshift/update-preflight/collector/format"
)

// nameValue is the value of a flag, as it is or with its kind, as "-o name" writes it.
type nameValue struct {
	text *string
	kind string
}

// String implements pflag.Value.
func (v nameValue) String() string { return *v.text }

// Set implements pflag.Value.
func (v nameValue) Set(text string) error {
	*v.text = format.BareName(v.kind, text)
	return nil
}

// Type implements pflag.Value.
func (nameValue) Type() string { return "string" }
