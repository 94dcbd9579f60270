package hosted

import "github.com/openshift/update-preflight/collector/check"

// Checks are the checks of the management cluster's side, and of a guest that cannot be reached. A
// new one is added here.
func (c *ControlPlane) Checks() []check.Check {
	checks := []check.Check{
		c.backup(),
		c.controlPlane(),
		c.nodePools(),
		c.skew(),
		c.reconciliation(),
		c.request(),
		c.version(),
	}
	if c.guestError != nil {
		checks = append(checks, c.guest())
	}
	return checks
}
