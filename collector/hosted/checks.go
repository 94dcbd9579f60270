package hosted

import "github.com/openshift/update-preflight/collector/check"

// Checks are the checks of the management cluster's side, and of a guest that cannot be reached. A
// new one is added here.
func (c *ControlPlane) Checks() []check.Check {
	checks := []check.Check{
		backupCheck(c),
		controlPlaneCheck(c),
		poolsCheck(c),
		skewCheck(c),
		reconciliationCheck(c),
		requestCheck(c),
		versionCheck(c),
	}
	if c.guestError != nil {
		checks = append(checks, guestCheck(c))
	}
	return checks
}
