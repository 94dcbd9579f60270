package flagset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/site"
)

// Site name the administrator's own checks.
type Site struct{ Checks []string }

// Add adds --checks to the command.
func (f *Site) Add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.Checks, "checks", nil, "Checks of your own besides those of the release: a directory with annotated manifests, or an image by digest with them in /manifests; repeatable. Their names start with Site.")
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
