package scaffold

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxName leaves room for "-preflight" in the 40 characters that the SDK
	// allows the name of a Job (preflight-sdk/manifest.go).
	maxName = 30
	// maxComponent is the limit of a label's value, which it becomes.
	maxComponent = validation.LabelValueMaxLength
)

// names are the name of a check in camel case and in kebab case. One that is
// given in camel case stays as it is: only the author knows the acronyms.
func names(name string) (camel, kebab string, err error) {
	switch {
	case regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(name):
		kebab = name
		for word := range strings.SplitSeq(name, "-") {
			camel += strings.ToUpper(word[:1]) + word[1:]
		}
	case regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).MatchString(name):
		camel, kebab = name, kebabCase(name)
	default:
		return "", "", fmt.Errorf("the name %q is neither in kebab case, such as storage-driver, nor in camel case, such as StorageDriver", name)
	}
	if kebab == "preflight" || strings.HasSuffix(kebab, "-preflight") {
		return "", "", fmt.Errorf("the name %q need not say preflight: leave that out, and say what is asked, such as storage-driver", name)
	}
	if len(kebab) > maxName {
		return "", "", fmt.Errorf("the name %q has %d characters in kebab case, and %d is the limit: it becomes part of the names of Jobs", name, len(kebab), maxName)
	}
	return camel, kebab, nil
}

// kebabCase puts a dash where a word begins: HTTPProxyV2 is http-proxy-v2.
func kebabCase(camel string) string {
	dashed := regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(camel, "$1-$2")
	dashed = regexp.MustCompile(`([A-Z])([A-Z][a-z])`).ReplaceAllString(dashed, "$1-$2")
	return strings.ToLower(dashed)
}

// checkComponent applies the rule for components in the names of a release's
// manifests (cluster-version-operator docs/dev/operators.md), and those for
// labels and for the names of images.
func checkComponent(component string) error {
	if len(component) > maxComponent || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(component) {
		return fmt.Errorf("the component %q is not one to %d lower-case letters and digits with single dashes between, such as cluster-foo-operator", component, maxComponent)
	}
	return nil
}
