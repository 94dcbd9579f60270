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

// request contains the relevant fields of a cloudcredential.openshift.io/v1
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

// statement is a statement of an IAM policy.
type statement struct {
	Effect          string         `json:"effect"`
	Action          []string       `json:"action"`
	Resource        string         `json:"resource"`
	PolicyCondition map[string]any `json:"policyCondition"`
}

// object identifies the request in a finding.
func (r request) object() preflight.Object {
	return preflight.Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// validate returns an error for requests that beyond does not support.
func (r request) validate() error {
	if r.Kind != "CredentialsRequest" {
		return fmt.Errorf("kind %q: want CredentialsRequest", r.Kind)
	}
	for _, s := range r.Spec.ProviderSpec.StatementEntries {
		if s.Effect != "Allow" {
			return fmt.Errorf("CredentialsRequest %s has a statement with effect %q: only Allow is supported", r.Name, s.Effect)
		}
	}
	return nil
}

// beyond returns the permissions in r that are not in granted.
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

// grants reports whether s allows an action of another statement, on all of its
// resources and under its conditions.
func (s statement) grants(action string, wanted statement) bool {
	return slices.ContainsFunc(s.Action, func(pattern string) bool {
		return matches(strings.ToLower(pattern), strings.ToLower(action))
	}) && matches(s.Resource, wanted.Resource) &&
		(len(s.PolicyCondition) == 0 || reflect.DeepEqual(s.PolicyCondition, wanted.PolicyCondition))
}

// matches implements the wildcards of IAM: * is any text, ? is one character. If text is
// a pattern too, pattern must match everything that text matches.
func matches(pattern, text string) bool {
	expression := strings.NewReplacer(`\*`, `.*`, `\?`, `[^*]`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString(text)
}

// readRequests returns the requests for AWS in the YAML files of directory, at least
// one.
func readRequests(directory string) ([]request, error) {
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("cannot read the target's CredentialsRequests in the directory in CREDENTIALS_REQUESTS: %w", err)
	}
	var all []request
	for _, file := range files {
		// A mounted ConfigMap also contains links.
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
	content, err := os.ReadFile(name) //nolint:gosec // The caller sets the directory.
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
