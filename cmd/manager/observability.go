package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weightedrollout/weightedrollout/internal/metrics"
	"github.com/weightedrollout/weightedrollout/internal/notify"
)

// leading tells whether this is the replica that works.
func leading(mgr ctrl.Manager) func() bool {
	return func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
}

// addMetrics serves what the status of the rollouts says, and the counters.
func addMetrics(mgr ctrl.Manager, counters *metrics.Counters, evidence metrics.Evidence) error {
	state := &metrics.State{Reader: mgr.GetClient(), Evidence: evidence, Leading: leading(mgr), Clock: clock.RealClock{}}
	if err := errors.Join(ctrlmetrics.Registry.Register(state), ctrlmetrics.Registry.Register(counters)); err != nil {
		return fmt.Errorf("add the metrics of rollouts: %w", err)
	}
	return nil
}

// notifyOptions say whom to tell of transitions.
type notifyOptions struct {
	urlFile, tokenFile, format, templateFile, level string
}

func (o *notifyOptions) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.urlFile, "notify-url-file", "", "File with the URL of a webhook that is told of the turning points of rollouts, such as a mounted Secret; read anew for every notification. Default: nobody is told.")
	fs.StringVar(&o.tokenFile, "notify-bearer-token-file", "", "File with a bearer token for that webhook.")
	fs.StringVar(&o.format, "notify-format", notify.FormatSlack, "What the webhook gets: slack ({\"text\": \"…\"}, which Mattermost and others take as well) or json (all fields).")
	fs.StringVar(&o.templateFile, "notify-template-file", "", "File with a template of Go's text/template that writes what the webhook gets, as JSON; instead of --notify-format.")
	fs.StringVar(&o.level, "notify-level", string(notify.LevelInfo), "What the webhook is told of: Info (every change of phase), Action (what waits for a person, and warnings) or Warning (what went wrong).")
}

// sender returns the sender of notifications, or nil if nobody is to be told. The error
// names the flag.
func (o *notifyOptions) sender(counters *metrics.Counters) (*notify.Sender, error) {
	if o.urlFile == "" {
		if o.tokenFile != "" || o.templateFile != "" {
			return nil, errors.New("--notify-bearer-token-file and --notify-template-file need --notify-url-file")
		}
		return nil, nil //nolint:nilnil // nobody is to be told
	}
	payload, err := o.payload()
	if err != nil {
		return nil, err
	}
	level, err := notify.ParseLevel(o.level)
	if err != nil {
		return nil, fmt.Errorf("--notify-level: %w", err)
	}
	sender := notify.New(notify.Config{
		URLFile: o.urlFile, TokenFile: o.tokenFile, Payload: payload, Least: level,
		Count: counters.Notification, Clock: clock.RealClock{}, Log: ctrl.Log.WithName("notify"),
	})
	if err := sender.Problem(); err != nil {
		// That must not keep any rollout from being looked after.
		ctrl.Log.Info("nobody can be told of transitions until this is put right", "problem", err.Error())
	}
	return sender, nil
}

// announcer is where transitions go; nil without a sender.
func announcer(s *notify.Sender) func(notify.Transition) {
	if s == nil {
		return nil
	}
	return s.Announce
}

func addSender(mgr ctrl.Manager, s *notify.Sender) error {
	if s == nil {
		return nil
	}
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("add the sender of notifications: %w", err)
	}
	return nil
}

func (o *notifyOptions) payload() (*notify.Payload, error) {
	if o.templateFile == "" {
		payload, err := notify.Format(o.format)
		if err != nil {
			return nil, fmt.Errorf("--notify-format: %w", err)
		}
		return payload, nil
	}
	text, err := os.ReadFile(o.templateFile)
	if err != nil {
		return nil, fmt.Errorf("--notify-template-file: %w", err)
	}
	payload, err := notify.Template(string(text))
	if err != nil {
		return nil, fmt.Errorf("--notify-template-file: %w", err)
	}
	return payload, nil
}
