package record

import "fmt"

// CommandExitCode is the exit code for bad input: no run has this ID.
func (e *NotFoundError) CommandExitCode() int { return 2 }

// Hint is the command to run next.
func (e *NotFoundError) Hint() string { return "List the runs: oc preflight history" }

// Hint is the command to run next.
func (e *SelectionError) Hint() string {
	return fmt.Sprintf("Follow the run: oc preflight attach %s; or end it: oc preflight cancel %[1]s", e.ID)
}

// Hint is the command to run next.
func (e *UnauthenticError) Hint() string {
	if e.State == Unverifiable {
		return "Print a role with the permission: oc preflight auth status"
	}
	return "Run the preflight again: oc preflight run; end a run in progress: oc preflight cancel " + e.ID
}
