package conformance

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/label"
)

// attempt is the data that one attempt left.
type attempt struct {
	// findings are what a preflight would report.
	findings []finding.Finding
	// end is the terminated state of the check's container; nil when it did not end.
	end *corev1.ContainerStateTerminated
	// running is true when it was still running.
	running bool
	// stopped is true when the kubelet stopped it.
	stopped bool
	// signal is the stop signal, if the kubelet reports it.
	signal corev1.Signal
	// message is the frame in the termination message, with the error of
	// parsing it.
	message      preflight.Result
	messageError error
	// flooded is true when the log has more than maxLog bytes.
	flooded bool
	// answered is true when the check itself wrote the final result.
	answered bool
}

// trialResults holds the attempts by check and trial, and the rights of its account
// by check.
type trialResults struct {
	mutex    sync.Mutex
	tried    map[string]map[string]attempt
	accounts map[string]rights.Rights
	// reading is true when a binding of the manifest grants the account rights.
	reading map[string]bool
}

func (s *trialResults) write(check, trial string, left attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tried[check] == nil {
		s.tried[check] = map[string]attempt{}
	}
	s.tried[check][trial] = left
}

// answered are the checks with a final result in the first trial.
func (s *trialResults) answered(checks []string) []string {
	var answered []string
	for _, check := range checks {
		if s.tried[check][asIs].answered {
			answered = append(answered, check)
		}
	}
	return answered
}

// left is the latest attempt of a trial with a check; ok is false before the first.
func (s *trialResults) left(check, trial string) (left attempt, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left, ok = s.tried[check][trial]
	return left, ok
}

// final is true when the check ended with a result that its exit
// code matches. Without a declared frame the exit code is the result.
func (a attempt) final(check jobplan.Check, log []byte) bool {
	run := check.Job.Labels[label.Run]
	for _, data := range [][]byte{[]byte(a.end.Message), log} {
		result, err := preflight.ParseFrame(data)
		if err == nil && result.RunID == run && result.Agrees(int(a.end.ExitCode)) {
			return true
		}
	}
	framed := check.Framed || a.messageError == nil || !errors.Is(a.messageError, preflight.ErrNoFrame)
	return !framed && a.end.ExitCode < 126 // exit codes from 126 are those of signals and failed starts
}

// took is how long the ended check ran.
func (a attempt) took() time.Duration { return a.end.FinishedAt.Sub(a.end.StartedAt.Time) }

// killed reports whether SIGKILL ended the check.
func (a attempt) killed() bool { return a.end != nil && a.end.ExitCode == 137 }
