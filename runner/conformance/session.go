package conformance

import (
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/inventory"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/launch"
)

// cleanupTimeout bounds the reading and deletion after an attempt.
const cleanupTimeout = time.Minute

// Config configures Run. Every field is required.
type Config struct {
	Kubernetes kubernetes.Interface
	Metadata   metadata.Interface
	// From and To are the versions of the update passed to the checks.
	From, To string
	// Timeout bounds one attempt; up to three are made one after another.
	Timeout time.Duration
	// ToolVersion is recorded on created objects.
	ToolVersion string
	// Progress is called with each step, concurrently.
	Progress func(step string)
}

// session is one call of Run.
type session struct {
	Config
	subject  Subject
	launcher *launch.Launcher
	objects  *inventory.Objects
	// id labels the created namespaces.
	id         string
	namespaces []string

	trialResults
}

func (s *session) newRun() jobplan.Run {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	now := time.Now().UTC()
	return jobplan.Run{
		ID: uuid.NewString(), From: s.From,
		// There is no release.
		Target:    update.Release{Version: s.To, Image: "conformance.invalid/release@" + digest},
		StartTime: now, Deadline: now.Add(s.Timeout), ToolVersion: s.ToolVersion,
	}
}
