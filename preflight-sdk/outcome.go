package preflight

import "cmp"

// Compare orders outcomes, the worst first: Fail, Unknown, Warn, Skipped, Pass.
// It is negative when o is worse than other, positive when other is worse, and 0
// when neither is. An outcome that this version does not define ranks as
// Unknown.
func (o Outcome) Compare(other Outcome) int { return cmp.Compare(severity(other), severity(o)) }
