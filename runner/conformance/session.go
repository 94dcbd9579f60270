package conformance

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
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

type session struct {
	config   Config
	subject  Subject
	launcher *launch.Launcher
	objects  *inventory.Objects
	results  trialResults
}

func (s *session) newRun() jobplan.Run {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	now := time.Now().UTC()
	return jobplan.Run{
		ID: uuid.NewString(), From: s.config.From,
		// There is no release.
		Target:    update.Release{Version: s.config.To, Image: "conformance.invalid/release@" + digest},
		StartTime: now, Deadline: now.Add(s.config.Timeout), ToolVersion: s.config.ToolVersion,
	}
}

// trialResults holds the attempts by check and trial, and the rights of its account by check.
type trialResults struct {
	mutex    sync.Mutex
	tried    map[string]map[string]requirement.Attempt
	accounts map[string]rights.Rights
	// reading is true when a binding of the manifest grants the account rights.
	reading map[string]bool
}

func (s *trialResults) write(check, trial string, left requirement.Attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tried[check] == nil {
		s.tried[check] = map[string]requirement.Attempt{}
	}
	s.tried[check][trial] = left
}

// answered are the checks with a final result in the first trial.
func (s *trialResults) answered(checks []string) []string {
	var answered []string
	for _, check := range checks {
		if s.tried[check][requirement.AsIs].Answered {
			answered = append(answered, check)
		}
	}
	return answered
}

// left is the latest attempt of a trial with a check; ok is false before the first.
func (s *trialResults) left(check, trial string) (left requirement.Attempt, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left, ok = s.tried[check][trial]
	return left, ok
}

// Needs are the permissions to test any manifest, apart from those in its roles.
func Needs() access.Needs { return baseNeeds().And(jobplan.AnyNeeds()) }

// baseNeeds do not depend on the manifest. Namespaces are created only if the cluster lacks them.
func baseNeeds() access.Needs {
	own := access.Needs{
		Required: append(
			rights.GrantsNeeds(),
			access.Request{Verb: "get", Resource: "namespaces"},
			access.Request{Verb: "patch", Resource: "pods"},
		),
		Optional: append(
			access.Verbs(access.Request{Resource: "namespaces"}, "create", "delete"),
			access.Request{Verb: "get", Resource: "serviceaccounts", Name: "default"},
		),
	}
	return own.And(jobs.Needs()).And(cleanup.ListNeeds())
}
