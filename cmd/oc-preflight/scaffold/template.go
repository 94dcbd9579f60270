package scaffold

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/preflight-sdk/python"
	"github.com/openshift/update-preflight/preflight-sdk/sh"
)

// The suffix hides the templates from the Go tool. Those in part are inserted where
// another one has {{Intro}} or {{Unlisted}}.
//
//go:embed templates
var templates embed.FS

// placeholder is a name in a template. Templates are not of text/template, which
// calls methods by name: with it, the linker keeps the methods of every type, a third of
// the binary.
var placeholder = regexp.MustCompile(`{{[A-Za-z]+}}`)

// render returns the template with the values of about. A placeholder without a value is
// an error.
func render(name string, about about) ([]byte, error) {
	values, err := about.values(name)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	text, err := substitute(name, values)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	return []byte(text), nil
}

// substitute returns a template with its placeholders replaced.
func substitute(name string, values map[string]string) (string, error) {
	text, err := templates.ReadFile(path.Join("templates", name+".tmpl"))
	if err != nil {
		return "", err
	}
	var missing error
	result := placeholder.ReplaceAllStringFunc(string(text), func(found string) string {
		value, ok := values[strings.Trim(found, "{}")]
		if !ok {
			missing = fmt.Errorf("no value for %s", found)
		}
		return value
	})
	return result, missing
}

// values maps the placeholders of a template to what replaces them.
func (a about) values(name string) (map[string]string, error) {
	values := map[string]string{
		"Check": a.Check, "Component": a.Component, "Function": a.Function(), "Image": a.Image, "Job": a.Job, "Manifest": a.Manifest,
		"Name": a.Name, "Namespace": a.Namespace, "Program": a.Program, "Tool": a.Tool,
		"Command": `["/bin/sh", "/check/check.sh"]`, "Extension": "sh",
		"Shipped": " that the release ships", "Writer": a.Component,
		"ScriptBlock": literal(a.Script), "LibraryBlock": literal(a.Library),
	}
	if a.Language == Python {
		values["Command"], values["Extension"] = `["python3", "-B", "/check/check.py"]`, "py"
	}
	if a.Site {
		values["Shipped"], values["Writer"] = "", "release"
	}
	var err error
	for key, text := range map[string]string{"ComponentScalar": a.Component, "NamespaceScalar": a.Namespace} {
		if values[key], err = scalar(text); err != nil {
			return nil, err
		}
	}
	for key, part := range map[string]string{"Intro": a.intro(name), "Unlisted": a.unlisted()} {
		if part == "" {
			values[key] = ""
		} else if values[key], err = substitute(path.Join("part", part), values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// intro is the part at the start of a template; empty if it has none.
func (a about) intro(name string) string {
	owner := "operator"
	if a.Site {
		owner = "site"
	}
	switch name {
	case "Dockerfile", "check.go", "main.go":
		return name + "." + owner
	case "site-steps":
		return name + "." + string(a.Language)
	}
	return ""
}

// unlisted is the part about an image that image-references does not list; empty if it
// does.
func (a about) unlisted() string {
	if a.Listed {
		return ""
	}
	return "steps.unlisted"
}

// scalar returns text as a YAML string. It is quoted if a parser would read another
// type, such as 123 and null, which are valid names in Kubernetes.
func scalar(text string) (string, error) {
	quoted, err := yaml.Marshal(text)
	return strings.TrimSpace(string(quoted)), err
}

// literal returns text as a literal block of YAML below a key that is indented by two.
func literal(text string) string {
	var indented strings.Builder
	indented.WriteString("|\n")
	for line := range strings.Lines(text) {
		if line != "\n" {
			indented.WriteString("    ")
		}
		indented.WriteString(line)
	}
	return strings.TrimSuffix(indented.String(), "\n")
}

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
