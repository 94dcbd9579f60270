// Package author answers: which commands does the author of a check use?
//
// Each file is one command.
package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature/localfile"
)

// InitOptions are the arguments and flags of "init".
type InitOptions struct {
	// Name is the condition that the check examines, in kebab or camel case.
	Name string
	// Component is the operator; empty for the name of the directory.
	Component string
	// Namespace is the namespace of the Job; empty for the default.
	Namespace string
	// Directory is the root of the repository.
	Directory string
	// Site is true for a check of a site instead of an operator.
	Site bool
	// Language is the language of a check of a site; empty for Go.
	Language string
	// Image runs a check of a site, by digest; empty for a name to replace.
	Image string
}

// NewInit returns the command "init", which writes the files of a new check. It needs no cluster.
func NewInit(streams genericiooptions.IOStreams) *cobra.Command {
	var flags InitOptions
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Start a new check in the repository of an operator",
		Long: `Write the files of a new check into the repository of an operator: a program with a check and its test, a Dockerfile to try it with, and the manifests of its Job. Unchanged, they build, pass their test and conform. NAME is the condition that the check examines, such as storage-driver or StorageDriver.

With --site it is a check of your own site, for "run --checks": a Go program, or a script in sh or Python in a ConfigMap, with the manifest in the directory checks.

No file is replaced: where one of them exists, nothing is written. No cluster is used.

Exit codes: 0 written, 1 the tool failed, 2 wrong usage or bad input.`,
		Example: `  # In a clone of the operator's repository
  oc preflight init storage-driver

  # Anywhere
  oc preflight init storage-driver --component cluster-foo-operator --namespace openshift-foo --dir ../foo

  # A check of your own site, without an image of its own
  oc preflight init --site backup-done --language sh --image quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:...`,
		Args: flagset.Arguments(1, 1, "the name of a check"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Name = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return initialize(streams, flags, c.Parent().CommandPath()) })
		},
	}
	c.Flags().StringVar(&flags.Component, "component", "", "Name of the operator in the release. Default: the name of the directory.")
	c.Flags().StringVarP(&flags.Namespace, "namespace", "n", "",
		"Namespace of the Job. Default: openshift- and the component without cluster-; with --site, site-checks.")
	c.Flags().StringVar(&flags.Directory, "dir", ".", "Root of the repository.")
	c.Flags().BoolVar(&flags.Site, "site", false, "Start a check of your own site instead of an operator.")
	c.Flags().StringVar(&flags.Language, "language", "", "With --site: language of the check: go, sh or python. Default: go.")
	c.Flags().StringVar(&flags.Image, "image", "", "With --site: image that runs the check, by digest. Default: a name to replace.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "component", "image", "language", "namespace",
		"site")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay, Again: option.Never}, "dir")
	return c
}

// initialize writes the files, and prints their names to standard output and the next
// steps to standard error.
func initialize(streams genericiooptions.IOStreams, flags InitOptions, tool string) error {
	made, err := flags.scaffold(flags.Name)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	steps, err := made.Steps(tool)
	if err != nil {
		return err
	}
	if err := made.Write(flags.Directory); err != nil {
		return withRemedy(err)
	}
	for _, file := range made.Files {
		fmt.Fprintln(streams.Out, filepath.Join(flags.Directory, filepath.FromSlash(file.Path)))
	}
	fmt.Fprintf(streams.ErrOut, "\n%s", steps)
	return nil
}

// scaffold returns the files of an operator or of a site.
func (f InitOptions) scaffold(name string) (scaffold.Scaffold, error) {
	if f.Site {
		return scaffold.NewSite(scaffold.SiteParameters{
			Name: name, Namespace: cmp.Or(f.Namespace, "site-checks"), Image: f.Image,
			Language: scaffold.Language(cmp.Or(f.Language, string(scaffold.Go))),
		})
	}
	parameters, err := f.parameters(name)
	if err != nil {
		return scaffold.Scaffold{}, err
	}
	return scaffold.New(parameters)
}

// parameters takes the values of the flags, and defaults by the naming convention of
// OpenShift's repositories and namespaces.
func (f InitOptions) parameters(name string) (scaffold.Parameters, error) {
	parameters := scaffold.Parameters{Name: name, Component: f.Component, Namespace: f.Namespace}
	if parameters.Component == "" {
		absolute, err := filepath.Abs(f.Directory)
		if err != nil {
			return scaffold.Parameters{}, fmt.Errorf("name the component with --component: %w", err)
		}
		parameters.Component = filepath.Base(absolute)
	}
	if parameters.Namespace == "" {
		parameters.Namespace = "openshift-" + strings.TrimPrefix(parameters.Component, "cluster-")
	}
	references, err := scaffold.References(f.Directory)
	if err != nil {
		return scaffold.Parameters{}, fmt.Errorf("--dir: %w", err)
	}
	parameters.References = references
	return parameters, nil
}

// withRemedy adds the remedy to the error for files that exist.
func withRemedy(err error) error {
	if _, ok := errors.AsType[*scaffold.ExistsError](err); !ok {
		return err
	}
	return exitcode.BadUsage(fmt.Errorf("%w; an image has one /bin/preflight: to add a check, pass it to preflight.Main", err))
}

// ConformanceOptions are the arguments and flags of "conformance".
type ConformanceOptions struct {
	// Subject is an image, or the path of manifests.
	Subject string
	// Images replace images of the manifests: PULLSPEC or SOURCE=PULLSPEC.
	Images []string
	// From and To are the versions that are passed to the check.
	From, To string
	// Timeout is the time limit of one trial.
	Timeout time.Duration
	// Output is the format of standard output.
	Output string
}

// NewConformance returns the command "conformance", which tests a check against the conformance requirements.
func NewConformance(client *cli.Client) *cobra.Command {
	flags := ConformanceOptions{Output: "text"}
	c := &cobra.Command{
		Use:   "conformance (IMAGE | MANIFEST)",
		Short: "Test whether a check meets the conformance requirements",
		Long: `Run a check in this cluster as a preflight would, in several trials with one constraint each, and report the requirements that it violates: the manifest policy, read-only access, a result even when killed, a non-root user, a read-only file system, little memory, little space for the result, the same result twice, and no pass without an API server.

MANIFEST is a file or a directory with the annotated Job and the objects that it needs, as in the repository of the operator. A release build replaces the tags of the images with digests. Here --image does so; without it, a tag is resolved to its current digest. IMAGE is tested as a Job that runs /bin/preflight without any permissions.

Everything that was created is deleted at the end, including namespaces of the manifest that the cluster did not have.

Exit codes: 0 the check conforms, 1 the tool failed, 2 wrong usage or bad input, 3 the check does not conform, 4 a trial was inconclusive, 130 interrupted.`,
		Example: `  # The manifests of a repository, with the image of a pull request
  oc preflight conformance manifests/ --image registry.example.com/pr/my-operator:123

  # For a CI system
  oc preflight conformance manifests/ -o junit > junit_conformance.xml

  # Only an image
  oc preflight conformance quay.io/example/my-operator:latest`,
		Args: flagset.Arguments(1, 1, "an image, or a file or directory of manifests"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Subject = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return conform(c, client, flags) })
		},
	}
	c.Flags().StringArrayVar(&flags.Images, "image", nil,
		"Image to run instead of one that the manifest names: PULLSPEC for all, SOURCE=PULLSPEC for one, SOURCE being its repository.")
	c.Flags().StringVar(&flags.From, "from", "4.20.0", "Version of the cluster that is passed to the check.")
	c.Flags().StringVar(&flags.To, "to", "4.21.0", "Version of the target that is passed to the check.")
	c.Flags().DurationVar(&flags.Timeout, "timeout", time.Minute, "Time limit of one trial; up to three are made one after another.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "image", "from", "timeout")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	flagset.OutputFlag(c, &flags.Output, conformance.Report{})
	client.Roles.Declare(c, role.Role{Needs: role.Always(conformance.Needs), Remarks: func(role.Request) []string {
		return []string{fmt.Sprintf(role.Given, "the manifest"), role.CopiesGrant, role.JobsRunAs}
	}})
	return c
}

func conform(c *cobra.Command, client *cli.Client, flags ConformanceOptions) error {
	if err := flags.validate(); err != nil {
		return exitcode.BadUsage(err)
	}
	subject, err := flags.subject(c)
	if err != nil {
		return err
	}
	reached, err := client.Connect()
	if err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	result, err := conformance.Run(c.Context(), conformance.Config{
		Kubernetes: reached.Kubernetes, Metadata: reached.Metadata, From: flags.From, To: flags.To, Timeout: flags.Timeout,
		ToolVersion: program.Version(),
		Progress:    func(step string) { display.Step(step) },
	}, subject)
	display.Close()
	if len(result.Results) == 0 && err != nil {
		return err
	}
	if err := errors.Join(err, expression.Write(client.Streams.Out, flags.Output, result, terminal.Style(client.Streams.Out))); err != nil {
		return err
	}
	return conforms(result)
}

// conforms turns the report into the error that carries its exit code.
func conforms(result conformance.Report) error {
	switch result.Outcome() {
	case preflight.Pass:
		return nil
	case preflight.Fail:
		return &exitcode.Error{Code: exitcode.Blocked}
	case preflight.Unknown, preflight.Warn, preflight.Skipped:
	}
	return &exitcode.Error{Code: exitcode.Undecided}
}

func (f ConformanceOptions) validate() error {
	if err := expression.Check(f.Output, conformance.Report{}); err != nil {
		return err
	}
	if f.Timeout <= 0 {
		return fmt.Errorf("the timeout %s is not positive", f.Timeout)
	}
	return nil
}

// subject is the manifests of a file or directory, or otherwise an image.
func (f ConformanceOptions) subject(c *cobra.Command) (conformance.Subject, error) {
	info, err := os.Stat(f.Subject)
	if err != nil {
		if looksLikeFile(f.Subject) {
			return conformance.Subject{}, exitcode.BadUsage(err)
		}
		if len(f.Images) > 0 {
			return conformance.Subject{}, exitcode.BadUsage(errors.New("--image applies to manifests, not to an image"))
		}
		return conformance.Program(c.Context(), f.Subject, registry.Own(c.Context(), flagset.Local())), nil
	}
	files, err := readManifests(c.Context(), f.Subject, info)
	if err != nil {
		return conformance.Subject{}, exitcode.BadUsage(err)
	}
	var substitutions []conformance.Substitution
	for _, text := range f.Images {
		substitution, err := conformance.ParseSubstitution(text)
		if err != nil {
			return conformance.Subject{}, exitcode.BadUsage(fmt.Errorf("--image: %w", err))
		}
		substitutions = append(substitutions, substitution)
	}
	subject, err := conformance.Manifests(c.Context(), files, substitutions, registry.Own(c.Context(), flagset.Local()))
	if err != nil {
		return conformance.Subject{}, exitcode.BadUsage(fmt.Errorf("%s: %w", f.Subject, err))
	}
	return subject, nil
}

// looksLikeFile is true for an argument that cannot be a pull spec.
func looksLikeFile(argument string) bool {
	return strings.HasPrefix(argument, ".") || strings.HasPrefix(argument, "/") || strings.HasSuffix(argument, "/") ||
		slices.Contains(manifestExtensions(), filepath.Ext(argument))
}

func manifestExtensions() []string { return []string{".yaml", ".yml", ".json"} }

// maxManifests bounds the manifests of a check, in bytes.
const maxManifests = 16 << 20

// readManifests reads a file, or the manifests of a directory without its
// subdirectories, by the names of the files.
func readManifests(ctx context.Context, path string, info os.FileInfo) (map[string][]byte, error) {
	if !info.IsDir() {
		return readFiles([]string{path}, func(path string) (io.ReadCloser, error) { return localfile.Open(ctx, path) })
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains(manifestExtensions(), filepath.Ext(entry.Name())) {
			paths = append(paths, filepath.Join(path, entry.Name()))
		}
	}
	return readFiles(paths, func(path string) (io.ReadCloser, error) { return localfile.OpenRegular(path) })
}

func readFiles(paths []string, open func(string) (io.ReadCloser, error)) (map[string][]byte, error) {
	files := map[string][]byte{}
	remaining := int64(maxManifests)
	for _, path := range paths {
		file, err := open(path)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(file, remaining+1))
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("could not read %s: %w", path, err)
		}
		if remaining -= int64(len(content)); remaining < 0 {
			return nil, fmt.Errorf("%s: the manifests of a check may have at most %d MiB", path, maxManifests>>20)
		}
		files[filepath.Base(path)] = content
	}
	return files, nil
}
