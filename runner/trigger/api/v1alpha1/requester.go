package v1alpha1

// Requester is the role that creates an UpdatePreflight.
type Requester string

// LabelRequester is the label with the Requester. An object without it, or with another
// value, is that of an administrator.
const LabelRequester = Group + "/requester"

// The requesters by which the controller labels its own objects, which it deletes when
// their release is neither selected nor offered.
const (
	BySelection Requester = "selected"
	Ahead       Requester = "ahead"
)

// Owned reports whether the controller creates and deletes the object.
func (p *UpdatePreflight) Owned() bool {
	requester := Requester(p.Labels[LabelRequester])
	return requester == BySelection || requester == Ahead
}
