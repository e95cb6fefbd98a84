package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// checkNoCommand refuses what is left of the command line after the flags: everything
// behind it would go unread.
func checkNoCommand(rest []string) error {
	if len(rest) == 0 {
		return nil
	}
	switch word := rest[0]; word {
	case standDownName:
		return fmt.Errorf("the command %s comes first, before all flags", standDownName)
	case "true", "false":
		return fmt.Errorf("there is no command %q: a flag that is true or false takes its value with =, such as --leader-elect=false", word)
	default:
		return fmt.Errorf("there is no command %q: the only one is %s", word, standDownName)
	}
}

// check looks at the flags that nothing else checks before the start. The error names the
// flag, its value and the cure.
func (o options) check() error {
	if o.workers < 1 {
		return fmt.Errorf("--workers: %d rollouts at the same time is no rollout at all: give a number from 1, such as 8", o.workers)
	}
	return checkNamespaces(o.namespaces)
}

// checkNamespaces refuses a list of namespaces of which one cannot exist, or that has
// none though it is not empty: it would stand for all of them.
func checkNamespaces(list string) error {
	names := splitNames(list)
	if list != "" && len(names) == 0 {
		return fmt.Errorf("--namespaces: %q names no namespace: give one or more, such as shop,checkout, or leave the flag out for all", list)
	}
	wrong := slices.IndexFunc(names, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
	if wrong < 0 {
		return nil
	}
	name := names[wrong]
	if lower := strings.ToLower(name); len(validation.IsDNS1123Label(lower)) == 0 {
		return fmt.Errorf("--namespaces: %q is no namespace, since it has capital letters: write %s", name, lower)
	}
	return fmt.Errorf("--namespaces: %q is no namespace: %s", name, validation.IsDNS1123Label(name)[0])
}

// checkWait refuses a longest wait in which nothing can be done.
func checkWait(flag string, wait time.Duration, such string) error {
	if wait > 0 {
		return nil
	}
	return fmt.Errorf("--%s: a wait of %s is none: give one above 0s, such as %s", flag, wait, such)
}

// readControllers reads a comma-separated list of the names that GatewayClasses have for
// their controllers. A list that is not empty and names none would stand for anybody.
func readControllers(list string) ([]gatewayv1.GatewayController, error) {
	var all []gatewayv1.GatewayController
	for _, name := range splitNames(list) {
		if domain, path, ok := strings.Cut(name, "/"); !ok || domain == "" || path == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("--gateway-controllers: %q is no controllerName of a GatewayClass: write it as there, such as traefik.io/gateway-controller", name)
		}
		all = append(all, gatewayv1.GatewayController(name))
	}
	if list != "" && len(all) == 0 {
		return nil, fmt.Errorf("--gateway-controllers: %q names no controller: give one or more, such as traefik.io/gateway-controller, or leave the flag out for anybody's confirmation", list)
	}
	return all, nil
}
