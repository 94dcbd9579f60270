package scene

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/words"
)

// DefaultTimeout bounds a judgement.
const DefaultTimeout = 10 * time.Minute

// Settings are the options for reading and evaluating a cluster. The zero value uses the monitoring of the
// cluster, and accepts what ClusterVersion accepts.
type Settings struct {
	Judgement Judgement
	// Timeout bounds the judgement, from start to verdict; 0 means DefaultTimeout.
	Timeout time.Duration
	// ToolVersion is recorded in reports and on Jobs.
	ToolVersion string
	// Estate contains the management cluster of a hosted cluster; the zero value is a cluster that is not hosted.
	Estate hosted.Estate
	// Asks says how to ask the API server about the next pods of drained controllers; nil if it is not asked.
	Asks *recreation.Asks
	// Step reports the next step, in words; nil reports nothing.
	Step func(string)
}

// Judgement contains the administrator's decisions about findings.
type Judgement struct {
	// Force reads and runs a release that could not be verified. The decision stays the one without force.
	// The verdict reports it, with the reason (see CheckForceReason) and the user who requested it.
	Force                 bool
	ForceReason, ForcedBy string
	// Accepted are acceptances from files, Accept the acceptances of this request. If a finding is accepted more than
	// once, the report names the file before ClusterVersion's spec.desiredUpdate.acceptRisks, and that before Accept.
	Accepted, Accept []acceptance.Acceptance
	// IgnoredAlerts and IgnoredNamespaces select alerts that only warn, by name and
	// by their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
	// Fixed is when the clients of removed APIs were fixed; the zero value means that no time was given. It is part of
	// what a run covers.
	Fixed removedapi.FixTime
	// Dependencies are outside the cluster and must respond; nil means none.
	Dependencies *dependency.Set
	// Monitoring reads metrics and alerts, each once, so each judgement needs its own
	// client; nil means the cluster's own monitoring.
	Monitoring *monitoring.Client
}

func (s Settings) validate() error {
	if s.Timeout < 0 {
		return input.Errorf("the timeout %s is negative", s.Timeout)
	}
	switch {
	case s.Judgement.Force && s.Judgement.ForceReason != "":
		if err := CheckForceReason(s.Judgement.ForceReason); err != nil {
			return &input.Error{Err: err}
		}
	case s.Judgement.ForceReason != "":
		return input.Errorf("a reason for force was given without force")
	}
	for _, accepted := range s.Judgement.Accept {
		if err := acceptance.CheckName(accepted.Risk); err != nil {
			return &input.Error{Err: err}
		}
	}
	return nil
}

// maxForceReason bounds a reason of force, in bytes. It is shown in full.
const maxForceReason = 500

// CheckForceReason returns an error unless the text is a reason of force: one line of printable text, of at
// most 500 bytes.
func CheckForceReason(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the reason is empty")
	case len(text) > maxForceReason:
		return fmt.Errorf("the reason is %d bytes long, but at most %d are allowed", len(text), maxForceReason)
	case strings.ContainsAny(text, "\r\n"), words.Line(text, maxForceReason) != strings.Join(strings.Fields(text), " "):
		return errors.New("the reason is not one line of printable text")
	}
	return nil
}

func (s Settings) withDefaults(c *cluster.Cluster) Settings {
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	if s.Judgement.Monitoring == nil {
		own := monitoring.Querier{Config: c.Config(), Dynamic: c.Dynamic}
		s.Judgement.Monitoring = monitoring.New(own.Find, monitoring.DefaultTimeout)
	}
	if s.Step == nil {
		s.Step = func(string) {}
	}
	return s
}
