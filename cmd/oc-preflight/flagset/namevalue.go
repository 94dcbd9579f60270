package flagset

import (
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/collector/document/format"
)

// UpdateValue is the value of a flag that takes the version of an update, or the name of an
// update as "-o name" writes it.
func UpdateValue(version *string) pflag.Value { return updateName{version} }

type updateName struct{ version *string }

func (n updateName) String() string { return *n.version }

func (n updateName) Set(text string) error {
	*n.version = format.BareName(format.UpdateName, text)
	return nil
}

func (updateName) Type() string { return "string" }
