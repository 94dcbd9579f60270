// Package author answers: which commands does the author of a check use?
//
// Each file is one command.
package author

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
)

type initFlags struct {
	component, namespace, directory string
	site                            bool
	language, image                 string
}

// NewInit makes "init", which writes the files of a new check. It needs no cluster.
func NewInit(streams genericiooptions.IOStreams) *cobra.Command {
	var flags initFlags
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Start a new check in the repository of an operator",
		Long: `Write the files of a new check into the repository of an operator: a program with a check and its test, a Dockerfile to try it with, and the manifests of its Job. They build, pass their test and conform unchanged. NAME is the condition that the check examines, such as storage-driver or StorageDriver.

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
			return initialize(streams, flags, args[0], c.Parent().CommandPath())
		},
	}
	c.Flags().StringVar(&flags.component, "component", "", "Name of the operator in the release. By default, that of the directory.")
	c.Flags().StringVarP(&flags.namespace, "namespace", "n", "", "Namespace of the Job. By default openshift- and the component without cluster-; with --site, site-checks.")
	c.Flags().StringVar(&flags.directory, "dir", ".", "Root of the repository.")
	c.Flags().BoolVar(&flags.site, "site", false, "Start a check of your own site instead of an operator.")
	c.Flags().StringVar(&flags.language, "language", "", "With --site: language of the check: go, sh or python. Default: go.")
	c.Flags().StringVar(&flags.image, "image", "", "With --site: image that runs the check, by digest. Default: a name to replace.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "component", "image", "language", "namespace", "site")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay, Again: option.Never}, "dir")
	return c
}

// initialize writes the files, and prints their names to standard output and the next
// steps to standard error.
func initialize(streams genericiooptions.IOStreams, flags initFlags, name, tool string) error {
	made, err := flags.scaffold(name)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	steps, err := made.Steps(tool)
	if err != nil {
		return err
	}
	if err := made.Write(flags.directory); err != nil {
		return withRemedy(err)
	}
	for _, file := range made.Files {
		fmt.Fprintln(streams.Out, filepath.Join(flags.directory, filepath.FromSlash(file.Path)))
	}
	fmt.Fprintf(streams.ErrOut, "\n%s", steps)
	return nil
}

// scaffold returns the files of an operator or of a site.
func (f initFlags) scaffold(name string) (scaffold.Scaffold, error) {
	if f.site {
		return scaffold.NewSite(scaffold.SiteParameters{
			Name: name, Namespace: cmp.Or(f.namespace, "site-checks"), Image: f.image, Language: scaffold.Language(cmp.Or(f.language, string(scaffold.Go))),
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
func (f initFlags) parameters(name string) (scaffold.Parameters, error) {
	parameters := scaffold.Parameters{Name: name, Component: f.component, Namespace: f.namespace}
	if parameters.Component == "" {
		absolute, err := filepath.Abs(f.directory)
		if err != nil {
			return scaffold.Parameters{}, fmt.Errorf("name the component with --component: %w", err)
		}
		parameters.Component = filepath.Base(absolute)
	}
	if parameters.Namespace == "" {
		parameters.Namespace = "openshift-" + strings.TrimPrefix(parameters.Component, "cluster-")
	}
	references, err := scaffold.References(f.directory)
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
