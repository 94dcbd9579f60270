package flagset

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

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

// NamespacedName reads NAMESPACE/NAME, the value of a flag.
func NamespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s=%s: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
