package scaffold

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/preflight-sdk/python"
	"github.com/openshift/update-preflight/preflight-sdk/sh"
)

// SiteParameters are the input of [NewSite].
type SiteParameters struct {
	// Name names the check, by the rules of Parameters.Name.
	Name string
	// Namespace is the namespace of the Job. It must exist before the update.
	Namespace string
	// Image runs the check: one with the program, or with an interpreter. Empty means a
	// name to replace.
	Image string
	// Language is the language in which the check is written.
	Language Language
}

// NewSite returns the files for a new check of a site. A check in sh or Python is one
// manifest, with the script in a ConfigMap. The error names the invalid parameter.
func NewSite(p SiteParameters) (Scaffold, error) {
	check, name, err := names(p.Name)
	if err != nil {
		return Scaffold{}, err
	}
	if err := p.validate(); err != nil {
		return Scaffold{}, err
	}
	about := about{
		Check: check, Name: name, Job: name, Namespace: p.Namespace, Image: cmp.Or(p.Image, "registry.example.com/site/"+name+":latest"),
		Program: "cmd/" + name + "-preflight", Manifest: "checks/" + name + ".yaml", Listed: true, Site: true, Language: p.Language,
	}
	if p.Language == Go {
		return about.files(about.program())
	}
	return about.script()
}

func (p SiteParameters) validate() error {
	if messages := validation.IsDNS1123Label(p.Namespace); len(messages) > 0 {
		return fmt.Errorf("namespace %q: %s", p.Namespace, messages[0])
	}
	if _, err := name.ParseReference(p.Image); err != nil && p.Image != "" {
		return fmt.Errorf("image %q: %w", p.Image, err)
	}
	if !slices.Contains(Languages(), p.Language) {
		return fmt.Errorf("language %q: want one of %q", p.Language, Languages())
	}
	return nil
}

// script is the manifest of a check in sh or Python.
func (a about) script() (Scaffold, error) {
	source := "check.sh"
	a.Library = sh.Library()
	if a.Language == Python {
		source, a.Library = "check.py", python.Library()
	}
	script, err := render(source, a)
	if err != nil {
		return Scaffold{}, err
	}
	a.Script = string(script)
	manifest, err := render("script.yaml", a)
	if err != nil {
		return Scaffold{}, err
	}
	return Scaffold{about: a, Files: []File{{Path: a.Manifest, Content: manifest}}}, nil
}
