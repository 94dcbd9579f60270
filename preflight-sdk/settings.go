package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The output formats.
const (
	outputText  = "text"
	outputJSON  = "json"
	outputJUnit = "junit"
)

// help is written by hand, since the flag package shows one dash and sorts by
// name.
const help = `Asks whether it is safe to update this cluster. Changes nothing.

  --run NAME,...      run only these checks, and those they come after
  --skip NAME,...     do not run these checks
  --from VERSION      version that the cluster runs
  --to VERSION        version to update to
  --image PULLSPEC    release image of that version
  --path VERSION,...  versions on the way, from the first to the last
  --fact NAME=VALUE   what is known about that version; any number of times
  -o text|json|junit  form of the output (default text)

  --list              show the checks and run none; -o json shows their rules too

  --print-manifest    print the Job, ServiceAccount and roles that run all checks
                      in a release as YAML, and run none; with
    --name NAME       the name of all of these
    --namespace NAME  where Job and ServiceAccount are
    --image PULLSPEC  the image, by its name in image-references

Exit codes: 0 nothing in the way, 2 bad usage, 3 a check failed, 4 could not tell.

In a Job of "oc preflight run" no flag is needed: the runner sets
PREFLIGHT_CURRENT_VERSION, PREFLIGHT_TARGET_VERSION, PREFLIGHT_TARGET_IMAGE,
PREFLIGHT_UPDATE_PATH, PREFLIGHT_FACTS, PREFLIGHT_RUN_ID, PREFLIGHT_DEADLINE and
PREFLIGHT_RESULT_BYTES.
`

// settings is what the flags and the environment ask for.
type settings struct {
	update        Update
	deadline      time.Time // zero: none
	budget        int
	list          bool
	printManifest bool
	manifest      ManifestOptions
	run, skip     string
	output        string
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
	s.declare(flags)
	if err := flags.Parse(args); err != nil {
		return s, fmt.Errorf("%w (--help shows the flags)", err)
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q (--help shows the flags)", flags.Arg(0))
	}
	// What --image means depends on a flag that may come after it.
	if !s.printManifest && s.manifest.Image != "" {
		s.update.Image, s.manifest.Image = s.manifest.Image, ""
	}
	return s, s.validate()
}

func (s *settings) declare(flags *flag.FlagSet) {
	flags.BoolVar(&s.list, "list", false, "")
	flags.StringVar(&s.run, "run", "", "")
	flags.StringVar(&s.skip, "skip", "", "")
	flags.StringVar(&s.update.From, "from", s.update.From, "")
	flags.StringVar(&s.update.To, "to", s.update.To, "")
	flags.Func("path", "", func(text string) (err error) {
		s.update.Path, err = parsePath(text)
		return err
	})
	flags.Func("fact", "", s.addFact)
	flags.StringVar(&s.output, "o", outputText, "")
	flags.BoolVar(&s.printManifest, "print-manifest", false, "")
	flags.StringVar(&s.manifest.Name, "name", "", "")
	flags.StringVar(&s.manifest.Namespace, "namespace", "", "")
	flags.StringVar(&s.manifest.Image, "image", "", "")
}

// addFact lets a flag tell more than the environment, or something else.
func (s *settings) addFact(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	if s.update.Facts == nil {
		s.update.Facts = map[string]string{}
	}
	s.update.Facts[name] = value
	return nil
}

// validate refuses what would be left out in silence.
func (s settings) validate() error {
	switch {
	case s.output != outputText && s.output != outputJSON && s.output != outputJUnit:
		return fmt.Errorf("output %q: want text, json or junit", s.output)
	case s.list && s.output == outputJUnit:
		return errors.New("--list prints text or json")
	case s.printManifest && (s.list || s.run != "" || s.skip != "" || s.output != outputText):
		return errors.New("--print-manifest is for all checks, as YAML: it goes with --name, --namespace and --image only")
	case !s.printManifest && s.manifest != ManifestOptions{}:
		return errors.New("--name and --namespace are for --print-manifest")
	}
	return nil
}

func (s *settings) readEnvironment(getenv func(string) string) error {
	s.update = Update{
		From:  getenv("PREFLIGHT_CURRENT_VERSION"),
		To:    getenv("PREFLIGHT_TARGET_VERSION"),
		Image: getenv("PREFLIGHT_TARGET_IMAGE"),
	}
	var err error
	if s.update.Path, err = parsePath(getenv("PREFLIGHT_UPDATE_PATH")); err != nil {
		return fmt.Errorf("PREFLIGHT_UPDATE_PATH: %w", err)
	}
	if s.update.Facts, err = parseFacts(getenv("PREFLIGHT_FACTS")); err != nil {
		return fmt.Errorf("PREFLIGHT_FACTS: %w", err)
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
