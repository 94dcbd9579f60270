package finding

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/words"
)

// ActionType is the kind of an [Action].
type ActionType string

// The types of actions.
const (
	// ActionRun is a command of another program, in Action.Command.
	ActionRun ActionType = "Run"
	// ActionAccept accepts the finding named by Action.Value.
	ActionAccept ActionType = "Accept"
	// ActionAcknowledge acknowledges the admin gate named by Action.Value.
	ActionAcknowledge ActionType = "Acknowledge"
	// ActionTargets lists the updates that the cluster knows.
	ActionTargets ActionType = "Targets"
	// ActionRoles prints the roles that grant what is missing.
	ActionRoles ActionType = "Roles"
	// ActionRetry runs the preflight again, with the option named by Action.Value changed where there is one.
	ActionRetry ActionType = "Retry"
	// ActionAttach attaches to the run named by Action.Value, whose checks continue.
	ActionAttach ActionType = "Attach"
	// ActionStart starts the update with the arguments of oc in Action.Value. It is a step of a verdict that
	// permits the update, never of a finding.
	ActionStart ActionType = "Start"
)

// The options that an ActionRetry may name.
const (
	OptionTimeout     = "timeout"
	OptionParallelism = "parallelism"
	OptionMonitoring  = "monitoring"
	OptionTrust       = "trust"
	OptionRepository  = "repository"
	OptionSelection   = "selection"
	OptionImages      = "images"
	OptionFixTime     = "fixTime"
	OptionGraph       = "graph"
)

// maxText bounds a message, a remedy and a fact, in bytes: as much as a Job may report.
const maxText = 32 << 10

// Action is one step of a remedy that is a command to type or an option to set.
// A library names the step; the program that shows it fills in Command, since
// only a program knows its own command line.
type Action struct {
	Type ActionType `json:"type"`
	// Value is what the step is about: the name of a finding, of an admin gate, of an
	// option or of a user, the ID of a run, or arguments.
	Value string `json:"value,omitempty"`
	// Command is the whole command line.
	Command string `json:"command,omitempty"`
	// Cluster is [Management] for a command about the management cluster of a hosted cluster, and may be [Guest] for
	// one about the guest. It is empty for one about the cluster that is judged.
	Cluster string `json:"cluster,omitempty"`
}

// The clusters of a hosted cluster (HyperShift).
const (
	Management = "management"
	Guest      = "guest"
)

// MaxCommand bounds a command in bytes. A longer one is left out: what remains of a
// command that is cut may do something else.
const MaxCommand = 4 << 10

// Run is the action of typing a command of another program, on one line.
func Run(format string, args ...any) Action {
	return whole(words.Line(fmt.Sprintf(format, args...), MaxCommand+1))
}

// InManagement is Run for a command about the management cluster of a hosted cluster.
func InManagement(format string, args ...any) Action {
	action := Run(format, args...)
	action.Cluster = Management
	return action
}

// Script is the action of typing a command that the author of a check wrote: its line breaks and spaces are kept.
func Script(command string) Action {
	return whole(words.Lines(command, MaxCommand+1))
}

func whole(command string) Action {
	if len(command) > MaxCommand {
		command = ""
	}
	return Action{Type: ActionRun, Command: command}
}

// Accept is the action of accepting a finding by name.
func Accept(name string) Action { return Action{Type: ActionAccept, Value: name} }

// Acknowledge is the action of acknowledging an admin gate.
func Acknowledge(gate string) Action { return Action{Type: ActionAcknowledge, Value: gate} }

// Targets is the action of listing the updates that the cluster knows.
func Targets() Action { return Action{Type: ActionTargets} }

// Roles is the action of granting the permissions that are missing.
func Roles() Action { return Action{Type: ActionRoles} }

// RolesOf is the action of granting the permissions that a user of another cluster
// lacks, by the name that its API server gives; empty for one who is unknown.
func RolesOf(user string) Action { return Action{Type: ActionRoles, Value: user} }

// Retry is the action of running the preflight again, with one option changed;
// option is empty when the same request is to be repeated.
func Retry(option string) Action { return Action{Type: ActionRetry, Value: option} }

// Start is the action of starting the update.
func Start(arguments string) Action { return Action{Type: ActionStart, Value: arguments} }

// Attach is the action of attaching to a run whose checks continue.
func Attach(run string) Action { return Action{Type: ActionAttach, Value: run} }
