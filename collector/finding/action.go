package finding

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// ActionType is the kind of an [Action].
type ActionType string

// The types of actions.
const (
	// ActionRun is a command whose words are in Action.Calls.
	ActionRun ActionType = "Run"
	// ActionScript is a command that the author of a check wrote, in Action.Command: a text whose effect is unknown.
	ActionScript ActionType = "Script"
	// ActionAccept accepts the finding named by Action.Value.
	ActionAccept ActionType = "Accept"
	// ActionAcknowledge acknowledges the admin gate named by Action.Value.
	ActionAcknowledge ActionType = "Acknowledge"
	// ActionTargets lists the updates that the cluster knows.
	ActionTargets ActionType = "Targets"
	// ActionRoles prints the roles that grant the missing permissions.
	ActionRoles ActionType = "Roles"
	// ActionRetry runs the preflight again, with the option in Action.Value changed if there is one.
	ActionRetry ActionType = "Retry"
	// ActionAttach attaches to the run named by Action.Value, whose checks continue.
	ActionAttach ActionType = "Attach"
	// ActionStart starts the update. It is a step of a verdict that
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

// Action is one step of a remedy that is a command to type or an option to set. A library has its words, or names
// the step; the program that shows it writes Command, since only a program knows its own command line, and how the
// cluster is reached.
type Action struct {
	Type ActionType `json:"type"`
	// Value is the argument of the step: the name of a finding, of an admin gate, of an option or of a user, the ID of
	// a run, or arguments.
	Value string `json:"value,omitempty"`
	// Calls are the words of the command, one list for each call of a pipeline.
	Calls [][]string `json:"calls,omitempty"`
	// Output is the file for the output of the command, which only its owner may read; empty for none.
	Output string `json:"output,omitempty"`
	// Operation is the effect of the command on its cluster.
	Operation Operation `json:"operation,omitempty"`
	// Command is the whole command line, each word quoted for a shell; empty if there is no command to type.
	Command string `json:"command,omitempty"`
	// Sentence is the instruction if Command is empty: the connected cluster is not the one to change, or the reader must
	// supply a value.
	Sentence string `json:"sentence,omitempty"`
	// Cluster is [Management] for a command about the management cluster of a hosted cluster, and may be [Guest] for a
	// command about the guest. It is empty for the evaluated cluster.
	Cluster string `json:"cluster,omitempty"`
}

// Operation is the effect of a command on its cluster.
type Operation string

// The operations. A command of which nothing is known counts as one that changes something.
const (
	Reads   Operation = "Reads"
	Changes Operation = "Changes"
	Deletes Operation = "Deletes"
	// Local commands are about no cluster.
	Local Operation = "Local"
)

// The clusters of a hosted cluster (HyperShift).
const (
	Management = "management"
	Guest      = "guest"
)

// MaxCommand bounds a command in bytes. A longer one is left out: what remains of a
// command that is cut may do something else.
const MaxCommand = 4 << 10

// line is a command whose words are separated by spaces, and its calls by "|". Only constants of a program are of this
// type, so no text from outside makes a word.
type line string

// Read is the action of typing a command that changes nothing. In the line, %s stands for the next operand; an
// operand of type []string that is a whole word becomes as many words. There is no command if an operand would be
// taken for a flag, or cannot be shown unchanged.
func Read(command line, operands ...any) Action { return action(Reads, command, operands) }

// Change is Read for a command that changes something.
func Change(command line, operands ...any) Action { return action(Changes, command, operands) }

// Delete is Read for a command that deletes something, or makes it run no longer.
func Delete(command line, operands ...any) Action { return action(Deletes, command, operands) }

// OnThisMachine is Read for a command that is about no cluster.
func OnThisMachine(command line, operands ...any) Action { return action(Local, command, operands) }

func action(operation Operation, command line, operands []any) Action {
	made := Action{Type: ActionRun, Operation: operation, Calls: [][]string{nil}}
	for form := range strings.FieldsSeq(string(command)) {
		if form == "|" {
			made.Calls = append(made.Calls, nil)
			continue
		}
		var of []any
		if count := strings.Count(form, "%s"); count > 0 {
			of, operands = operands[:count], operands[count:]
		}
		filled := filled(form, of)
		if strings.HasPrefix(form, "%") && slices.ContainsFunc(filled, func(word string) bool { return strings.HasPrefix(word, "-") }) {
			return Action{Type: ActionRun}
		}
		last := len(made.Calls) - 1
		made.Calls[last] = append(made.Calls[last], filled...)
	}
	return made.Written()
}

// filled are the words of a form with its operands.
func filled(form string, operands []any) []string {
	if len(operands) == 0 {
		return []string{form}
	}
	if list, ok := operands[0].([]string); ok && form == "%s" {
		return list
	}
	return []string{fmt.Sprintf(form, operands...)}
}

// isHidden is true for a word that is not shown as it is: it has characters that are not printable.
func isHidden(word string) bool {
	return words.Lines(word, MaxCommand) != word || strings.Contains(word, "\n")
}

// JSON is a value as an operand of a command, such as a patch.
func JSON(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "" // of the types that patches are made of, none is refused
	}
	return strings.TrimSpace(text.String())
}

// Script returns the command that the author of a check wrote, with its line breaks and spaces.
func Script(command string) Action {
	text := words.Lines(command, MaxCommand+1)
	if len(text) > MaxCommand {
		text = ""
	}
	return Action{Type: ActionScript, Command: text}
}

// In returns the command for a cluster other than the evaluated one.
func (a Action) In(cluster string) Action {
	a.Cluster = cluster
	return a
}

// Namespaced is the command of oc for a namespace; the same for none.
func (a Action) Namespaced(namespace string) Action {
	if namespace == "" || len(a.Calls) == 0 {
		return a
	}
	return a.Calling(func(call []string) []string { return slices.Insert(slices.Clone(call), 1, "-n", namespace) })
}

// Adding is the command with more words of the program at its end.
func (a Action) Adding(words ...string) Action {
	last := len(a.Calls) - 1
	if last < 0 {
		return a
	}
	a.Calls = slices.Clone(a.Calls)
	a.Calls[last] = slices.Concat(a.Calls[last], words)
	return a.Written()
}

// Into returns the command with its output in a file that only its owner may read.
func (a Action) Into(file string) Action {
	a.Output = file
	return a.Written()
}

// Calling is the command with each of its calls replaced.
func (a Action) Calling(replaced func(call []string) []string) Action {
	calls := make([][]string, len(a.Calls))
	for i, call := range a.Calls {
		calls[i] = replaced(call)
	}
	a.Calls = calls
	return a.Written()
}

// Mapped returns the action with each of its words, and its value, replaced.
func (a Action) Mapped(replaced func(word string) string) Action {
	a.Value, a.Sentence = replaced(a.Value), replaced(a.Sentence)
	if len(a.Calls) == 0 {
		a.Command = replaced(a.Command)
		return a
	}
	return a.Calling(func(call []string) []string {
		mapped := make([]string, len(call))
		for i, word := range call {
			mapped[i] = replaced(word)
		}
		return mapped
	})
}

// Written returns the action with its Command written from its words; without a command if it would be too long,
// or if a word cannot be shown unchanged. An action without words, such as the text of an author, is returned
// unchanged.
func (a Action) Written() Action {
	if len(a.Calls) == 0 {
		return a
	}
	var calls []string
	hidden := false
	for _, call := range a.Calls {
		hidden = hidden || slices.ContainsFunc(call, isHidden)
		calls = append(calls, words.ShellLine(call...))
	}
	a.Command = strings.Join(calls, " | ")
	if a.Output != "" {
		a.Command = fmt.Sprintf("(umask 077; %s > %s)", a.Command, words.ShellLine(a.Output))
	}
	if hidden || len(a.Command) > MaxCommand {
		a.Command, a.Calls = "", nil
	}
	return a
}

// Spoken is the action as a sentence, for a cluster that is not connected; the reader copies it on purpose.
func (a Action) Spoken(format string, args ...any) Action {
	a.Sentence, a.Command, a.Calls = fmt.Sprintf(format, args...), "", nil
	return a
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

// Retry is the action of running the preflight again, with one option changed; option is empty to repeat the same
// request.
func Retry(option string) Action { return Action{Type: ActionRetry, Value: option} }

// Start is the command as the action of starting the update.
func (a Action) Start() Action {
	a.Type = ActionStart
	return a
}

// Attach is the action of attaching to a run whose checks continue.
func Attach(run string) Action { return Action{Type: ActionAttach, Value: run} }
