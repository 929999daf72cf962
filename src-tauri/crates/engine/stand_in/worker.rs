//! The worker's side of the protocol, as far as tests of its supervision need it.

use std::io::{BufRead, Write};
use std::sync::mpsc;

use crate::faults::{Fault, hang};
use twospeed_engine::protocol::{
    Ability, EngineBuild, Event, Failure, FailureCode, Hello, Loaded, Measured, PROTOCOL, Phase,
    Placement, Request, Sample, Token, Variant,
};

/// Serves requests until the input ends or the fault does its work.
pub fn work(fault: &Fault) {
    fault.start();
    say(&Event::Hello(hello(fault)));
    fault.after_hello();
    let requests = listen(fault.leaves_at_end_of_input());
    while let Ok(request) = requests.recv() {
        match request {
            Request::Load(load) => {
                fault.first_request();
                say(&Event::LoadProgress { fraction: 0.5 });
                fault.mid_request();
                say(&if load.model.0.ends_with("missing.gguf") {
                    Event::Failed(Failure {
                        code: FailureCode::FileUnreadable,
                        message: load.model.0.display().to_string(),
                        log: Vec::new(),
                    })
                } else {
                    Event::Loaded(loaded())
                });
            }
            Request::Measure(measure) => serve_measure(fault, &requests, measure.repetitions),
            Request::Serve(serve) => serve_measure(fault, &requests, serve.repetitions),
            Request::Users(users) => serve_measure(fault, &requests, users.repetitions),
            Request::Quality(_) => serve_measure(fault, &requests, 1),
            Request::Generate(_) => {
                for number in 0..5000 {
                    say(&Event::Token(Token {
                        text: "word".into(),
                        at_ns: number,
                    }));
                }
                fault.mid_request();
            }
            // Without a request these mean nothing.
            Request::Go | Request::Enough | Request::Cancel => eprintln!("unasked {request:?}"),
            Request::ReadBandwidth(_)
            | Request::Foresee(_)
            | Request::Calibrate(_)
            | Request::Anchor(_)
            | Request::Quantize(_) => {
                say(&Event::Anchor { ns: 1 });
            }
        }
    }
}

fn serve_measure(fault: &Fault, requests: &mpsc::Receiver<Request>, repetitions: u32) {
    fault.first_request();
    say(&Event::Placed(Placement::default()));
    for index in 0..repetitions {
        say(&Event::Phase(Phase::Repetition { number: index + 1 }));
        loop {
            match requests.recv() {
                Ok(Request::Go) => break,
                Ok(Request::Cancel) if fault.is_deaf() => {}
                Ok(Request::Cancel) => return say(&Event::Cancelled),
                _ => return,
            }
        }
        say(&Event::Sample(Sample {
            index,
            ns: 1_000_000,
            involuntary_switches: None,
            major_faults: None,
            reading: None,
        }));
        fault.mid_request();
    }
    say(&Event::Measured(Measured {
        repetitions,
        peak_rss_bytes: None,
    }));
}

/// Reads requests on a thread of its own, which ends the process when the input ends.
fn listen(leave: bool) -> mpsc::Receiver<Request> {
    let (send, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(request) = serde_json::from_str(&line)
                && send.send(request).is_err()
            {
                break;
            }
        }
        if leave {
            std::process::exit(0);
        }
        hang();
    });
    requests
}

/// Writes a message; a closed output is no reason to stop.
fn say(event: &Event) {
    let line = serde_json::to_string(event).expect("BUG: an event has no map keys");
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn hello(fault: &Fault) -> Hello {
    let variant = Variant {
        name: fault.name.clone(),
        score: 1,
    };
    Hello {
        protocol: if fault.name == "other-protocol" {
            PROTOCOL + 1
        } else {
            PROTOCOL
        },
        engine: EngineBuild {
            build_number: 0,
            build_commit: "unknown".into(),
            crate_version: "0".into(),
        },
        variants: vec![variant.clone()],
        variant,
        devices: Vec::new(),
        cpu_info: "none".into(),
        gpu_info: String::new(),
        backends: "none".into(),
        system_info: String::new(),
    }
}

fn loaded() -> Loaded {
    Loaded {
        load_ns: 1,
        resident_before: None,
        page_cache: Default::default(),
        model_type: "none".into(),
        model_size: 1,
        model_n_params: 1,
        n_layer: 1,
        n_ctx_train: 1,
        n_vocab: 1,
        ability: Ability::Generates,
        recurrent: false,
    }
}
