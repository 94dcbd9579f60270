package guard

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the switches.
const (
	nameAlert     = "alert"
	nameOperator  = "clusterOperator"
	nameAdmission = "admission"
)

// Mode is what the policy does with the selection of a target that is not Ready.
type Mode string

// The modes.
const (
	// Warn lets the request pass with a warning, which oc prints.
	Warn Mode = "Warn"
	// Deny refuses the request.
	Deny Mode = "Deny"
)

// Choice is which switches are on. The zero value is none.
type Choice struct {
	Alert, ClusterOperator bool
	// Admission is the mode of the policy; empty while the switch is off.
	Admission Mode
}

// Choices are the texts that [Choose] accepts.
func Choices() []string {
	return []string{nameAlert, nameOperator, nameAdmission + "=" + string(Warn), nameAdmission + "=" + string(Deny)}
}

// Choose parses texts, each of which is one of [Choices]. Another text, or both modes of
// the policy, is an error.
func Choose(texts ...string) (Choice, error) {
	var chosen Choice
	for _, text := range texts {
		name, mode, _ := strings.Cut(text, "=")
		switch {
		case !slices.Contains(Choices(), text):
			return Choice{}, fmt.Errorf("%q is not one of %q", text, Choices())
		case name == nameAlert:
			chosen.Alert = true
		case name == nameOperator:
			chosen.ClusterOperator = true
		case chosen.Admission != "" && chosen.Admission != Mode(mode):
			return Choice{}, fmt.Errorf("the admission policy has one mode, but both %s and %s are chosen", chosen.Admission, mode)
		default:
			chosen.Admission = Mode(mode)
		}
	}
	return chosen, nil
}
