package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// request is what matters here of a cloudcredential.openshift.io/v1
// CredentialsRequest.
type request struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SecretRef    corev1.SecretReference `json:"secretRef"`
		ProviderSpec struct {
			Kind             string      `json:"kind"`
			StatementEntries []statement `json:"statementEntries"`
		} `json:"providerSpec"`
	} `json:"spec"`
}

// statement is one of an IAM policy.
type statement struct {
	Effect          string         `json:"effect"`
	Action          []string       `json:"action"`
	Resource        string         `json:"resource"`
	PolicyCondition map[string]any `json:"policyCondition"`
}

// object names the request.
func (r request) object() preflight.Object {
	return preflight.Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// validate refuses what beyond does not understand.
func (r request) validate() error {
	if r.Kind != "CredentialsRequest" {
		return fmt.Errorf("kind %q is not CredentialsRequest", r.Kind)
	}
	for _, s := range r.Spec.ProviderSpec.StatementEntries {
		if s.Effect != "Allow" {
			return fmt.Errorf("CredentialsRequest %s has a statement with effect %q: only Allow is understood", r.Name, s.Effect)
		}
	}
	return nil
}

// beyond lists the permissions in r that are not in granted.
func (r request) beyond(granted request) []string {
	var missing []string
	for _, wanted := range r.Spec.ProviderSpec.StatementEntries {
		for _, action := range wanted.Action {
			grants := func(s statement) bool { return s.grants(action, wanted) }
			if !slices.ContainsFunc(granted.Spec.ProviderSpec.StatementEntries, grants) {
				missing = append(missing, action+" on "+wanted.Resource)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// grants reports whether s allows an action of another statement, on all its
// resources and under its conditions.
func (s statement) grants(action string, wanted statement) bool {
	return slices.ContainsFunc(s.Action, func(pattern string) bool {
		return matches(strings.ToLower(pattern), strings.ToLower(action))
	}) && matches(s.Resource, wanted.Resource) &&
		(len(s.PolicyCondition) == 0 || reflect.DeepEqual(s.PolicyCondition, wanted.PolicyCondition))
}

// matches knows the wildcards of IAM: * is any text, ? one character. The text
// may be a pattern itself, all of whose matches must be matches of the other.
func matches(pattern, text string) bool {
	expression := strings.NewReplacer(`\*`, `.*`, `\?`, `[^*]`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString(text)
}

// readRequests reads the requests for AWS from the YAML files in directory, of
// which there must be at least one.
func readRequests(directory string) ([]request, error) {
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("cannot read the target's CredentialsRequests, in what CREDENTIALS_REQUESTS names: %w", err)
	}
	var all []request
	for _, file := range files {
		// The links by which a ConfigMap is mounted are no requests.
		if filepath.Ext(file.Name()) != ".yaml" {
			continue
		}
		requests, err := readFile(filepath.Join(directory, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read the CredentialsRequest in %q: %w", file.Name(), err)
		}
		all = append(all, requests...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no CredentialsRequest for AWS in %q", directory)
	}
	return all, nil
}

func readFile(name string) ([]request, error) {
	content, err := os.ReadFile(name) //nolint:gosec // The directory is the caller's own.
	if err != nil {
		return nil, err
	}
	var all []request
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var r request
		err := documents.Decode(&r)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case r.Spec.ProviderSpec.Kind != "AWSProviderSpec":
			continue
		}
		if err := r.validate(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
}
