use twospeed_chart::{ContextSeries, UsersSeries};

use super::*;

fn at(points: &[(f64, f64)]) -> Vec<At> {
    points
        .iter()
        .map(|(place, value)| At::one(*place, *value))
        .collect()
}

#[test]
fn a_depth_costs_what_its_points_say() {
    let input = Context {
        series: vec![ContextSeries {
            prefill: at(&[(0.0, 400.0), (4096.0, 200.0)]),
            decode: at(&[(2000.0, 80.0), (0.0, 100.0)]),
            ..ContextSeries::default()
        }],
        ..Context::default()
    };
    let said = context(&input, 0);
    // 1 - 80 / 100; 1 - 200 / 400; (12.5 - 10 ms) / 2 thousand tokens.
    let [
        Statement::DepthLoss {
            phase: PhaseName::Decode,
            depth: 2000,
            lost,
            ..
        },
        Statement::DepthLoss {
            phase: PhaseName::Prefill,
            lost: of_prefill,
            ..
        },
        Statement::DepthCost {
            ms_per_thousand,
            token_ms,
        },
    ] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert!((lost - 0.2).abs() < 1e-9 && (of_prefill - 0.5).abs() < 1e-9);
    assert!((ms_per_thousand - 1.25).abs() < 1e-9 && (token_ms - 10.0).abs() < 1e-9);
    assert!(context(&input, 1).is_empty());
}

#[test]
fn one_point_explains_nothing() {
    let input = Users {
        series: vec![UsersSeries {
            together: at(&[(4.0, 100.0)]),
            ..UsersSeries::default()
        }],
        ..Users::default()
    };
    assert_eq!(users(&input, 0), []);
}

#[test]
fn users_are_held_against_the_fewest() {
    let input = Users {
        series: vec![UsersSeries {
            together: at(&[(1.0, 50.0), (4.0, 100.0)]),
            each: at(&[(1.0, 50.0), (4.0, 25.0)]),
            median_wait_ms: at(&[(4.0, 300.0)]),
            worst_wait_ms: at(&[(4.0, 500.0)]),
            ..UsersSeries::default()
        }],
        ..Users::default()
    };
    assert_eq!(
        users(&input, 0),
        [
            Statement::UsersTogether {
                users: 4,
                fewest: 1,
                together: 100.0,
                before: 50.0,
                ratio: 2.0
            },
            Statement::UsersEach {
                users: 4,
                each: 25.0,
                before: 50.0,
                share: 0.5
            },
            Statement::UsersWait {
                users: 4,
                median_ms: 300.0,
                worst_ms: 500.0
            },
        ]
    );
}

#[test]
fn a_wait_is_explained_by_its_parts_its_reuse_and_its_start() {
    let wait = |request, ms: f64, parts: &[(Part, f64)], reused| Wait {
        name: Name::new("Q4_1"),
        request,
        total_ms: At::one(0.0, ms).value,
        parts: parts.to_vec(),
        prompt_tokens: 512,
        reused_tokens: reused,
    };
    let input = FirstToken {
        waits: vec![
            wait(Request::New, 700.0, &[(Part::Prefill, 699.0)], 0),
            wait(Request::Repeated, 20.0, &[], 511),
            wait(
                Request::Cold,
                2000.0,
                &[(Part::Load, 1300.0), (Part::FirstDecode, 9.0)],
                0,
            ),
            wait(Request::Warm, 750.0, &[], 0),
        ],
        ..FirstToken::default()
    };
    // The first row is the cold start, which loads.
    assert_eq!(
        first_token(&input, 0),
        [
            Statement::WaitParts {
                total_ms: 2000.0,
                parts: vec![WaitPart {
                    part: WaitPartName::Load,
                    ms: 1300.0
                }],
            },
            Statement::Reuse {
                reused: 511,
                prompt: 512,
                new_ms: 700.0,
                again_ms: 20.0
            },
            Statement::ColdStart {
                cold_ms: 2000.0,
                warm_ms: 750.0
            },
        ]
    );
}

#[test]
fn a_course_is_told_by_its_ends() {
    let course: Vec<(f64, f64)> = (0..20)
        .map(|i| (f64::from(i), if i < 10 { 100.0 } else { 80.0 }))
        .collect();
    let input = Sustained {
        series: vec![SustainedSeries {
            decode: course,
            temperature_c: vec![(0.0, 60.0), (9.0, 91.0)],
            ..SustainedSeries::default()
        }],
        ..Sustained::default()
    };
    assert_eq!(
        sustained(&input, 0),
        [
            Statement::Held {
                phase: PhaseName::Decode,
                first: 100.0,
                last: 80.0,
                share: 0.8,
                seconds: 19.0
            },
            Statement::MachineCourse {
                clock_ghz: None,
                hottest_c: Some(91.0)
            },
        ]
    );
}
