//! What the page may ask.

/// Hands the list of commands to a macro: `name(argument: Type, ..) [tells Message] -> Answer;`
///
/// A command that `tells` takes a channel, `events`, and answers when it has nothing more to tell.
/// Every command answers with its type or with a [`crate::Problem`].
#[macro_export]
macro_rules! for_each_command {
    ($then:path) => {
        $then! {
            // The frame.
            start() -> Start;
            follow_app() tells AppEvent -> ();
            change_settings(change: SettingsChange) -> Settings;
            shown() -> ();
            // Models.
            models() -> ModelsView;
            facts(row: String) -> Facts;
            add_path(path: String) -> Added;
            remove_folder(folder: String) -> ();
            scan() -> ();
            make(row: String) -> Job;
            cancel_job(job: String) -> ();
            estimate(request: EstimateRequest) -> EstimateView;
            look(source: String) -> Looked;
            twin(of: String) -> Job;
            pick_folder() -> Option<String>;
            pick_file() -> Option<String>;
            // Measure.
            plan(request: PlanRequest) -> PlanView;
            offers(request: OffersRequest) -> Offers;
            start_run(request: PlanRequest) -> ();
            follow_run() tells RunEvent -> ();
            stop_run(how: StopHow) -> ();
            resumable() -> Option<ResumableRun>;
            resume_run(run: String) -> ();
            painted(ticket: u32) -> ();
            calibration() -> Option<CalibrationView>;
            calibrate() -> Job;
            // Compare.
            results() -> ResultsView;
            figure(request: FigureRequest) -> FigureView;
            run_page(run: String) -> RunPage;
            delete_runs(runs: Vec<String>) -> ();
            restore_runs(runs: Vec<String>) -> ();
            set_note(run: String, note: String) -> ();
            allow_test(test: String, allowed: bool) -> ();
            export(request: ExportRequest) -> Exported;
            copy(request: ExportRequest, what: CopyWhat) -> ();
            pick_save(suggested: String, form: Form) -> Option<String>;
            reveal(path: String) -> ();
        }
    };
}
