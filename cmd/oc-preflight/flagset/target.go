package flagset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/site"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/localfile"
	"github.com/openshift/update-preflight/signature/store"
)

// Target are the flags that select the target release.
type Target struct {
	// Release is the release by version, by pull spec, or as the newest one.
	Release runner.Target
	// Force is true to run an unverified release, for ForceReason.
	Force bool
	// ForceReason is why the run is forced.
	ForceReason string
}

// Add adds --to, --to-latest, --to-image, --force and --force-reason to the command.
func (f *Target) Add(c *cobra.Command) {
	c.Flags().Var(UpdateValue(&f.Release.Version), "to",
		"Version of the target; ClusterVersion must list it as an available or conditional update or in its history.")
	c.Flags().BoolVar(&f.Release.Latest, "to-latest", false, "Select the newest available update.")
	c.Flags().StringVar(&f.Release.Image, "to-image", "", "Pull spec of the release image by digest; by tag only with --force.")
	c.Flags().BoolVar(&f.Force, "force", false, "Read and run a release that is not verified. --force-reason is required. "+
		"Force changes neither decision nor exit code; the report shows who forced the run and why.")
	c.Flags().StringVar(&f.ForceReason, "force-reason", "",
		"Why --force is given: one line of at most 500 bytes. It is included in the report, the record and the signed verdict.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "to-latest", "to-image")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Never}, "force", "force-reason")
}

// Selected are the flags that select the same release again; empty for the latest, which
// may be another one at that time: its version is in the report.
func (f *Target) Selected() []string {
	if f.Release.Version == "" && f.Release.Image == "" {
		return nil
	}
	return TargetFlag(report.Target{Version: f.Release.Version, Image: f.Release.Image})
}

// TargetFlag selects the same release again.
func TargetFlag(target report.Target) []string {
	if target.Version == "" {
		return []string{"--to-image", target.Image}
	}
	return []string{"--to", target.Version}
}

// Validate rejects a value of --to that is not a version, with the flag to use
// instead.
func (f *Target) Validate() error {
	version := f.Release.Version
	if strings.EqualFold(version, "latest") {
		return fmt.Errorf("--to takes a version, not %q; write --to-latest", version)
	}
	if bare, ok := strings.CutPrefix(version, "v"); ok {
		return fmt.Errorf("the version %q begins with a v; write --to %s", version, bare)
	}
	if LooksLikeImage(version) {
		return fmt.Errorf("--to takes a version, not the pull spec %q; write --to-image %[1]s", version)
	}
	return nil
}

// CheckVersion rejects what is not a version, and is not empty, with the flag to use instead: no cluster knows it.
func CheckVersion(version string) error {
	target := Target{Release: runner.Target{Version: version}}
	if err := target.Validate(); err != nil {
		return err
	}
	if version != "" && !SemverLike(version) {
		return fmt.Errorf("the version %q is not a semantic version like 4.19.3", version)
	}
	return nil
}

// CheckForce rejects a reason for force that cannot be shown.
func (f *Target) CheckForce() error {
	if !f.Force {
		return nil
	}
	if err := scene.CheckForceReason(f.ForceReason); err != nil {
		return fmt.Errorf("--force-reason: %w", err)
	}
	return nil
}

// LooksLikeImage is true for text that can only be meant as a pull spec.
func LooksLikeImage(text string) bool { return strings.ContainsAny(text, "/@") }

// NoArgument rejects arguments. For a version or a pull spec, the error names the flag
// to use.
func (f *Target) NoArgument(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	target := args[0]
	switch {
	case LooksLikeImage(target):
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; write --to-image %[2]s", c.CommandPath(), target))
	case strings.EqualFold(target, "latest"):
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; write --to-latest", c.CommandPath(), target))
	}
	if version := strings.TrimPrefix(target, "v"); SemverLike(version) {
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; write --to %s", c.CommandPath(), target, version))
	}
	return NoArguments(c, args)
}

// SemverLike reports whether the text is a complete semantic version.
func SemverLike(text string) bool {
	_, err := semver.Parse(text)
	return err == nil
}

// Trust are the flags that override the keys and stores that the cluster trusts.
type Trust struct {
	// Keyrings are paths of files with public keys; [Trust.Read] reads them.
	Keyrings []string
	// Stores are URLs and directories with signatures.
	Stores []string
	// Repositories are the repositories that a signature may name.
	Repositories []string
	// contents are the keyrings as they were read: a pipe can be read once.
	contents []string
}

// Add adds --keyring, --signature-store and --repository to the command.
func (f *Trust) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.Keyrings, "keyring", nil,
		"File with public keys that sign releases; a release needs a signature by a key of each file. Default: the keys that the cluster trusts.")
	c.Flags().StringSliceVar(&f.Stores, "signature-store", nil,
		"URL or directory with signatures. Default: the signature stores of the cluster.")
	c.Flags().StringSliceVar(&f.Repositories, "repository", nil,
		"Repository that a signature may name. It does not depend on where the release was copied to. "+
			"Default: quay.io/openshift-release-dev/ocp-release.")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswerByContent}, "keyring", "signature-store")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "repository")
}

// Read reads the keyrings and makes the stores. A file that cannot be read is bad
// input.
func (f *Trust) Read(ctx context.Context) ([]signature.Keyring, []store.Store, error) {
	var keyrings []signature.Keyring
	f.contents = nil
	for _, path := range f.Keyrings {
		keyring, content, err := readKeyring(ctx, path)
		if err != nil {
			return nil, nil, exitcode.BadUsage(err)
		}
		keyrings, f.contents = append(keyrings, keyring), append(f.contents, content)
	}
	var stores []store.Store
	for _, location := range f.Stores {
		store, err := store.New(location)
		if err != nil {
			return nil, nil, exitcode.BadUsage(fmt.Errorf("--signature-store: %w", err))
		}
		stores = append(stores, store)
	}
	return keyrings, stores, nil
}

// Identify adds to an origin what identifies the keyrings, by their content, and the stores. Read must have
// read them.
func (f *Trust) Identify(origin *runner.Origin) {
	origin.Keyrings, origin.Stores = runner.Identity(f.contents...), runner.Identity(f.Stores...)
}

func readKeyring(ctx context.Context, path string) (read signature.Keyring, content string, err error) {
	file, err := localfile.Open(ctx, path)
	if err != nil {
		return signature.Keyring{}, "", fmt.Errorf("--keyring: %w", err)
	}
	defer file.Close()
	var copied strings.Builder
	keyring, err := signature.ReadKeyring(path, io.TeeReader(file, &copied))
	if err != nil {
		return signature.Keyring{}, "", fmt.Errorf("--keyring: %w", err)
	}
	return keyring, copied.String(), nil
}

// Site is the flag for the administrator's own checks.
type Site struct {
	// Checks are directories, and images by digest, with manifests of checks.
	Checks []string
}

// Add adds --checks to the command.
func (f *Site) Add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.Checks, "checks", nil,
		"Your own checks, in addition to the release's: a directory with annotated manifests, or an image by digest with them in "+
			"/manifests. May be repeated. Their names start with Site.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswerByContent}, "checks")
}

// Sources reads the directories; images are read in the run. A path that exists is a
// directory.
func (f *Site) Sources() ([]site.Source, error) {
	var sources []site.Source
	for _, argument := range f.Checks {
		source, err := readSource(argument)
		if err != nil {
			return nil, fmt.Errorf("--checks: %w", err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func readSource(argument string) (site.Source, error) {
	_, err := os.Stat(argument)
	if err == nil {
		return site.Directory(argument)
	}
	image, invalid := site.Image(argument)
	if invalid == nil {
		return image, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return site.Source{}, fmt.Errorf("no directory %q exists, and %w", argument, invalid)
	}
	return site.Source{}, err
}

// SiteSources are the sources of the checks of the site that the findings are about: a
// command without them would run fewer checks.
func SiteSources(findings []finding.Finding) []string {
	var named []string
	for _, f := range findings {
		if source := f.Evidence["source"]; f.Name == site.NameSource && source != "" && !slices.Contains(named, source) {
			named = append(named, source)
		}
	}
	slices.Sort(named)
	return named
}

// OneVerb rejects a verb that a command does not have. The error names the most similar ones, or the command of that
// name for one cluster.
func OneVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	const mostDifferent = 2
	c.SuggestionsMinimumDistance = mostDifferent
	var meant []string
	for _, name := range c.SuggestionsFor(args[0]) {
		meant = append(meant, fmt.Sprintf("%q", c.CommandPath()+" "+name))
	}
	if elsewhere, rest, err := c.Root().Find(args[:1]); err == nil && len(rest) == 0 && len(meant) == 0 {
		meant = []string{fmt.Sprintf("%q", elsewhere.CommandPath())}
	}
	remedy := fmt.Sprintf("; see %q", c.CommandPath()+" --help")
	if len(meant) > 0 {
		remedy = "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return exitcode.BadUsage(fmt.Errorf("unknown command %q for %q%s", words.Line(args[0], longestVerb), c.CommandPath(), remedy))
}

// longestVerb bounds what an error shows of an unknown verb, in bytes.
const longestVerb = 64

// First returns the first argument; empty without one.
func First(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

type observerKey struct{}

// Observed returns a context in which commands hand over their options instead of running: how arguments become options
// is tested so.
func Observed(ctx context.Context, observe func(options any)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Execute runs a command with its options, unless its context is [Observed].
func Execute(c *cobra.Command, options any, run func() error) error {
	if observe, ok := c.Context().Value(observerKey{}).(func(any)); ok {
		observe(options)
		return nil
	}
	return run()
}

// NoArguments refuses arguments as wrong usage.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; see %q", c.CommandPath(), args[0], c.CommandPath()+" --help"))
	}
	return nil
}

// Arguments requires least to most arguments, none of which is empty; the error names them by what.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return exitcode.BadUsage(fmt.Errorf("%q takes %s, but got %s; see %q", c.CommandPath(), what, words.Count(len(args), "argument"),
				c.CommandPath()+" --help"))
		}
		if slices.Contains(args, "") {
			return exitcode.BadUsage(fmt.Errorf("an argument of %q is empty; a variable may not be set", c.CommandPath()))
		}
		return nil
	}
}

// UpdateValue is the value of a flag that takes the version of an update, or the name of an
// update as "-o name" writes it.
func UpdateValue(version *string) pflag.Value { return updateName{version} }

type updateName struct{ version *string }

func (n updateName) String() string { return *n.version }

func (n updateName) Set(text string) error {
	*n.version = format.BareName(format.UpdateName, text)
	return nil
}

func (updateName) Type() string { return "string" }

// DryRun is --dry-run: the value of DryRun in the options of requests, empty where they write.
type DryRun []string

// Add adds --dry-run, as kubectl has it, to the command; usage is its effect.
func (f *DryRun) Add(c *cobra.Command, usage string) {
	c.Flags().Var(f, "dry-run", usage+" client and server are the same.")
	c.Flags().Lookup("dry-run").NoOptDefVal = "server"
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "dry-run")
	completion.Fixed(c, "dry-run", "none", "server", "client")
}

func (f *DryRun) String() string {
	if len(*f) == 0 {
		return "none"
	}
	return "server"
}

// Set reads the value of the flag.
func (f *DryRun) Set(text string) error {
	switch text {
	case "none", "false":
		*f = nil
	case "client", "server", "true":
		*f = DryRun{metav1.DryRunAll}
	default:
		return errors.New("it must be none, server or client")
	}
	return nil
}

// Type is the name of the value in the help.
func (*DryRun) Type() string { return "string" }

// NamespacedName reads NAMESPACE/NAME, the value of a flag.
func NamespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s=%s: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
