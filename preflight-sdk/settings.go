package preflight

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

// help is written by hand, since the flag package shows one dash and sorts by
// name.
const help = `Asks whether it is safe to update this cluster. Changes nothing.

  --list           show the checks and run none
  --run NAME,...   run only these checks
  --skip NAME,...  do not run these checks
  --from VERSION   version that the cluster runs
  --to VERSION     version to update to
  --image PULLSPEC release image of that version
  -o text|json     form of the output (default text)

Exit codes: 0 nothing in the way, 2 bad usage, 3 a check failed, 4 could not tell.

In a Job of "oc preflight run" no flag is needed: the runner sets
PREFLIGHT_CURRENT_VERSION, PREFLIGHT_TARGET_VERSION, PREFLIGHT_TARGET_IMAGE,
PREFLIGHT_RUN_ID, PREFLIGHT_DEADLINE and PREFLIGHT_RESULT_BYTES.
`

// settings is what the flags and the environment ask for.
type settings struct {
	update    Update
	deadline  time.Time // zero: none
	budget    int
	list      bool
	run, skip string
	output    string
}

// parseSettings reads the environment that the runner sets, and over it the
// flags. With an error the settings are still good enough to report it.
func parseSettings(args []string, getenv func(string) string) (settings, error) {
	s := settings{budget: defaultBudget, output: outputText}
	if err := s.readEnvironment(getenv); err != nil {
		return s, err
	}

	flags := flag.NewFlagSet("preflight", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&s.list, "list", false, "")
	flags.StringVar(&s.run, "run", "", "")
	flags.StringVar(&s.skip, "skip", "", "")
	flags.StringVar(&s.update.From, "from", s.update.From, "")
	flags.StringVar(&s.update.To, "to", s.update.To, "")
	flags.StringVar(&s.update.Image, "image", s.update.Image, "")
	flags.StringVar(&s.output, "o", outputText, "")
	if err := flags.Parse(args); err != nil {
		return s, fmt.Errorf("%w (--help shows the flags)", err)
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q (--help shows the flags)", flags.Arg(0))
	}
	if s.output != outputText && s.output != outputJSON {
		return s, fmt.Errorf("output %q: want text or json", s.output)
	}
	return s, nil
}

func (s *settings) readEnvironment(getenv func(string) string) error {
	s.update = Update{
		From:  getenv("PREFLIGHT_CURRENT_VERSION"),
		To:    getenv("PREFLIGHT_TARGET_VERSION"),
		Image: getenv("PREFLIGHT_TARGET_IMAGE"),
	}
	id := getenv("PREFLIGHT_RUN_ID")
	if err := validateRunID(id); err != nil {
		return fmt.Errorf("PREFLIGHT_RUN_ID: %w", err)
	}
	s.update.RunID = id

	if text := getenv("PREFLIGHT_RESULT_BYTES"); text != "" {
		budget, err := strconv.Atoi(text)
		if err != nil || budget < minBudget {
			return fmt.Errorf("PREFLIGHT_RESULT_BYTES %q: want a number of at least %d", text, minBudget)
		}
		s.budget = min(budget, defaultBudget)
	}
	if text := getenv("PREFLIGHT_DEADLINE"); text != "" {
		deadline, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("PREFLIGHT_DEADLINE %q: want a time like 2026-01-31T10:00:00Z", text)
		}
		s.deadline = deadline
	}
	return nil
}

// choose gives the checks that --run and --skip leave.
func (s settings) choose(checks []Check) ([]Check, error) {
	run, skip := names(s.run), names(s.skip)
	var have []string
	for _, c := range checks {
		have = append(have, c.Name)
	}
	for _, name := range slices.Concat(run, skip) {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("no check %q: there are %s", name, strings.Join(have, ", "))
		}
	}

	var chosen []Check
	for _, c := range checks {
		if (len(run) == 0 || slices.Contains(run, c.Name)) && !slices.Contains(skip, c.Name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--run and --skip leave no check")
	}
	return chosen, nil
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// bounded is ctx that ends a margin before the deadline of the run, if there
// is one; and how long a check may go on after that. The margin is 5 seconds,
// or a tenth of the time that is left where that is less.
func (s settings) bounded(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	if s.deadline.IsZero() {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, maxGrace
	}
	margin := min(maxMargin, max(0, time.Until(s.deadline)/10))
	ctx, cancel := context.WithDeadlineCause(ctx, s.deadline.Add(-margin), errRunDeadline)
	return ctx, cancel, min(maxGrace, margin/2)
}
