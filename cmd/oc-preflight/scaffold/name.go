package scaffold

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxName leaves room for "-preflight" in the 40 characters to which the SDK limits
	// the name of a Job (preflight-sdk/manifest.go).
	maxName = 30
	// maxComponent is the limit of a label value, because the component becomes one.
	maxComponent = validation.LabelValueMaxLength
)

var (
	kebabPattern     = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	camelPattern     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	componentPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	wordEnd          = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronymEnd       = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// names returns the name of a check in camel case and in kebab case. A name in camel
// case is not changed, because only the author knows its acronyms.
func names(name string) (camel, kebab string, err error) {
	switch {
	case kebabPattern.MatchString(name):
		kebab = name
		for word := range strings.SplitSeq(name, "-") {
			camel += strings.ToUpper(word[:1]) + word[1:]
		}
	case camelPattern.MatchString(name):
		camel, kebab = name, kebabCase(name)
	default:
		return "", "", fmt.Errorf("name %q: want kebab case, such as storage-driver, or camel case, such as StorageDriver", name)
	}
	if kebab == "preflight" || strings.HasSuffix(kebab, "-preflight") {
		return "", "", fmt.Errorf("name %q: want a name without preflight, such as storage-driver", name)
	}
	if len(kebab) > maxName {
		return "", "", fmt.Errorf("name %q: %d characters in kebab case, want at most %d, because it becomes part of the names of Jobs", name, len(kebab), maxName)
	}
	return camel, kebab, nil
}

// kebabCase separates the words by dashes: HTTPProxyV2 becomes http-proxy-v2.
func kebabCase(camel string) string {
	dashed := wordEnd.ReplaceAllString(camel, "$1-$2")
	dashed = acronymEnd.ReplaceAllString(dashed, "$1-$2")
	return strings.ToLower(dashed)
}

// checkComponent applies the rule for components in the file names of manifests
// (cluster-version-operator docs/dev/operators.md), and the rules for labels and for
// names of images.
func checkComponent(component string) error {
	if len(component) > maxComponent || !componentPattern.MatchString(component) {
		return fmt.Errorf("component %q: want 1 to %d lower-case letters and digits, separated by single dashes, such as cluster-foo-operator", component, maxComponent)
	}
	return nil
}
