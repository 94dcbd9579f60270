package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Update is the update that is checked. A field is empty if its value is unknown.
// The runner always sets the first four fields, and the others if it knows them.
// Outside of a Job the flags --from, --to, --image, --path and --fact set them.
type Update struct {
	// RunID identifies the preflight run; empty outside of a Job.
	RunID string
	// From is the current version of the cluster, e.g. 4.20.5.
	From string
	// To is the target version, e.g. 4.21.3.
	To string
	// Image is the pull spec of the target's release image, by digest.
	Image string
	// Path contains the versions that the update goes through, From first and To
	// last. It is empty if the path is unknown. At most 32 versions.
	Path []string
	// Facts are further values about the target from the runner, by name. The names depend
	// on the runner, so a check must not rely on a fact: skip the check or return an
	// error if it is missing. At most 256 facts and 64 KiB.
	Facts map[string]string
}

// clone returns a deep copy, so that checks cannot change each other's update.
func (u Update) clone() Update {
	u.Path, u.Facts = slices.Clone(u.Path), maps.Clone(u.Facts)
	return u
}

// Limits of the values that describe an update.
const (
	maxPath       = 32
	maxFacts      = 256
	maxFactsBytes = 64 << 10
)

var versionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,127}$`)

// parsePath parses versions separated by commas. An empty text is an empty path.
func parsePath(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	path := strings.SplitN(text, ",", maxPath+1)
	if len(path) > maxPath {
		return nil, fmt.Errorf("more than %d versions", maxPath)
	}
	for _, v := range path {
		if !versionPattern.MatchString(v) {
			return nil, fmt.Errorf("version %.128q: want versions like 4.21.3, separated by commas", v)
		}
	}
	return path, nil
}

// parseFacts parses a JSON object of strings. An empty text contains no facts. A
// duplicate name is an error, because readers differ in which value they use.
func parseFacts(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // Facts are optional.
	}
	if len(text) > maxFactsBytes {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(text), maxFactsBytes)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("want a JSON object of strings")
	}
	facts := map[string]string{}
	for decoder.More() {
		name, value, err := parseFact(decoder)
		if err != nil {
			return nil, err
		}
		if _, taken := facts[name]; taken {
			return nil, fmt.Errorf("duplicate fact %.128q", name)
		}
		if len(facts) == maxFacts {
			return nil, fmt.Errorf("more than %d facts", maxFacts)
		}
		facts[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("want a JSON object of strings: unexpected end")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON object of strings: unexpected data after it")
	}
	return facts, nil
}

func parseFact(decoder *json.Decoder) (name, value string, err error) {
	token, err := decoder.Token()
	if err != nil {
		return "", "", errors.New("want a JSON object of strings: invalid JSON")
	}
	name, _ = token.(string)
	token, err = decoder.Token()
	if err != nil {
		return "", "", fmt.Errorf("fact %.128q: invalid JSON", name)
	}
	value, ok := token.(string)
	if name == "" || !ok {
		return "", "", fmt.Errorf("fact %.128q: want a non-empty name and a string value", name)
	}
	return name, value, nil
}

// The output formats.
const (
	outputText  = "text"
	outputJSON  = "json"
	outputJUnit = "junit"
)

// maxMargin is the maximum time before the deadline of the run at which the
// program ends by itself, so that its result is written before the kubelet
// kills it.
const maxMargin = 5 * time.Second

// help is written by hand: the flag package prints single dashes and sorts by
// name.
const help = `Reports whether the cluster can be updated safely. Read-only.

  --run NAME,...      run only these checks and their prerequisites
  --skip NAME,...     do not run these checks
  --from VERSION      version that the cluster runs
  --to VERSION        version to update to
  --image PULLSPEC    release image of the version to update to
  --path VERSION,...  versions that the update goes through, from first to last
  --fact NAME=VALUE   fact about the version to update to; may be repeated
  -o text|json|junit  output format (default text)

  --list              print the checks without running them; -o json includes
                      their rules

  --print-manifest    print the Job, the ServiceAccount and the roles that run all
                      checks in a release as YAML, without running them; requires
    --name NAME       name of these objects
    --namespace NAME  namespace of the Job and the ServiceAccount
    --image PULLSPEC  image, by its name in image-references

Exit codes: 0 no check failed or was inconclusive, 2 invalid usage, 3 a check
failed, 4 a check was inconclusive.

In a Job of "oc preflight run" no flags are needed: the runner sets
PREFLIGHT_CURRENT_VERSION, PREFLIGHT_TARGET_VERSION, PREFLIGHT_TARGET_IMAGE,
PREFLIGHT_UPDATE_PATH, PREFLIGHT_FACTS, PREFLIGHT_RUN_ID, PREFLIGHT_DEADLINE and
PREFLIGHT_RESULT_BYTES.
`

type settings struct {
	update        Update
	deadline      time.Time // Zero if there is no deadline.
	budget        int
	list          bool
	printManifest bool
	manifest      ManifestOptions
	run, skip     string
	output        string
}

// parseSettings reads the environment that the runner sets. Flags override it.
// The settings that are returned with an error are sufficient to report it.
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
	// The meaning of --image depends on --print-manifest, which may follow it.
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

// validate rejects flags that would have no effect.
func (s settings) validate() error {
	switch {
	case s.output != outputText && s.output != outputJSON && s.output != outputJUnit:
		return fmt.Errorf("output %q: want text, json or junit", s.output)
	case s.list && s.output == outputJUnit:
		return errors.New("--list supports only the outputs text and json")
	case s.printManifest && (s.list || s.run != "" || s.skip != "" || s.output != outputText):
		return errors.New("--print-manifest prints YAML for all checks: it allows only --name, --namespace and --image")
	case !s.printManifest && s.manifest != ManifestOptions{}:
		return errors.New("--name and --namespace require --print-manifest")
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

// bounded returns a context that ends a margin before the deadline of the run, if
// there is a deadline, and how long a check may continue after that. The margin
// is a tenth of the remaining time, at most 5 seconds.
func (s settings) bounded(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	if s.deadline.IsZero() {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, maxGrace
	}
	margin := min(maxMargin, max(0, time.Until(s.deadline)/10))
	ctx, cancel := context.WithDeadlineCause(ctx, s.deadline.Add(-margin), errRunDeadline)
	return ctx, cancel, min(maxGrace, margin/2)
}

// selectChecks returns the checks that --run and --skip select, in the order of
// declaration. --run also selects the prerequisites of a check: without them it
// might pass for the wrong reason.
func (s settings) selectChecks(checks []Check) ([]Check, error) {
	run, skip := names(s.run), names(s.skip)
	var declared []string
	for _, c := range checks {
		declared = append(declared, c.Name)
	}
	for _, name := range slices.Concat(run, skip) {
		if !slices.Contains(declared, name) {
			return nil, fmt.Errorf("unknown check %q: want one of %s", name, strings.Join(declared, ", "))
		}
	}
	run = withPrerequisites(run, checks)

	var selected []Check
	for _, c := range checks {
		if len(run) > 0 && !slices.Contains(run, c.Name) || slices.Contains(skip, c.Name) {
			continue
		}
		if i := slices.IndexFunc(c.After, func(name string) bool { return slices.Contains(skip, name) }); i >= 0 {
			return nil, fmt.Errorf("check %q has the prerequisite %q: skip both or neither", c.Name, c.After[i])
		}
		selected = append(selected, c)
	}
	if len(selected) == 0 {
		return nil, errors.New("--run and --skip select no check")
	}
	return selected, nil
}

// withPrerequisites adds the prerequisites of the named checks. It iterates
// backward because prerequisites are declared earlier.
func withPrerequisites(named []string, checks []Check) []string {
	for _, c := range slices.Backward(checks) {
		if slices.Contains(named, c.Name) {
			named = append(named, c.After...)
		}
	}
	return named
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
